"""What all readers share."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitnas.data.source import split_by_class


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
