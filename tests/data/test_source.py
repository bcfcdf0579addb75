"""What all readers share."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.data.source import split_by_class
from vitnas.data.table import read_source
from vitnas.errors import DataError


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=80),
    st.floats(0.0, 1.0),
    st.integers(0, 2**31),
)
def test_a_split_is_stratified_complete_and_repeatable(
    labels: list[int], fraction: float, seed: int
) -> None:
    tensor = torch.tensor(labels)
    stay, cut = split_by_class(tensor, fraction, seed)
    assert sorted(stay.tolist() + cut.tolist()) == list(range(len(labels)))
    counts = np.bincount(tensor[cut].numpy(), minlength=5)
    for label, number in enumerate(np.bincount(labels, minlength=5)):
        assert abs(counts[label] - number * fraction) <= 0.5
    again = split_by_class(tensor, fraction, seed)
    assert torch.equal(stay, again[0])
    assert torch.equal(cut, again[1])


def class_by_class(labels: Tensor, fraction: float, seed: int) -> list[int]:
    """What is cut, by the rule that runs made before were drawn by."""
    generator, cut = torch.Generator().manual_seed(seed), list[int]()
    for label in labels.unique():
        members = (labels == label).nonzero().squeeze(1)
        members = members[torch.randperm(len(members), generator=generator)]
        cut += members[: round(len(members) * fraction)].tolist()
    return sorted(cut)


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.3, 1.0])
@pytest.mark.parametrize(("number", "classes"), [(0, 3), (1, 1), (50, 7), (2000, 90)])
def test_the_draw_is_that_of_runs_made_before(number: int, classes: int, fraction: float) -> None:
    draw = torch.Generator().manual_seed(number)
    labels = 3 * torch.randint(classes, (number,), generator=draw)
    _, cut = split_by_class(labels, fraction, seed=5)
    assert cut.tolist() == class_by_class(labels, fraction, seed=5)


def test_the_draw_is_a_fixed_one() -> None:
    labels = torch.arange(4).repeat(5)
    assert split_by_class(labels, 0.4, seed=7)[1].tolist() == [0, 4, 10, 11, 13, 14, 15, 17]


def test_a_part_of_the_classes_and_a_split_of_images_in_memory() -> None:
    whole = read_source(DataConfig(), (8, 8))
    part = read_source(DataConfig(classes=("7", "3"), val_split="test"), (8, 8))
    assert whole.test is not None
    assert part.val is not None
    assert (part.classes, part.test) == (("3", "7"), None)
    for one, all_ in ((part.train, whole.train), (part.val, whole.test)):
        kept = (all_[1] == 3) | (all_[1] == 7)
        assert torch.equal(one[0][:], all_[0][kept])
        assert torch.equal(one[1], (all_[1][kept] == 7).long())
    assert part.fingerprint["num_images"] == len(part.train[1])
    assert part.fingerprint["num_classes"] == 2
    assert part.fingerprint["digest"] != whole.fingerprint["digest"]
    with pytest.raises(DataError, match=r"data.classes = 'seven': digits has no such class"):
        read_source(DataConfig(classes=("3", "seven")), (8, 8))
