"""Images on disk as a tensor: the same pixels, wherever they are asked for from."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.data.sets import complete, small_set
from vitnas.data.imageset import ImageSet
from vitnas.data.shards import Shards
from vitnas.errors import DataError


@pytest.fixture
def images(tmp_path: Path) -> ImageSet:
    """150 images in three shards."""
    found, files = small_set(tmp_path, 150)
    complete(found, files)
    return found


def whole(images: ImageSet) -> Tensor:
    parts = [np.load(images.place(number).with_suffix(".npy")) for number in range(3)]
    return torch.from_numpy(np.concatenate(parts))


@pytest.mark.parametrize("numbers", [[], [149], [64, 63, 0, 149, 63, 128], list(range(150))])
def test_any_numbers_in_any_order_give_their_pixels(images: ImageSet, numbers: list[int]) -> None:
    shards, index = Shards(images), torch.tensor(numbers, dtype=torch.int64)
    assert torch.equal(shards[index], whole(images)[index])
    assert shards.shape == (150, 3, 4, 4)
    assert len(shards) == 150


def test_sums_are_those_of_the_pixels(images: ImageSet) -> None:
    index = torch.tensor([149, 3, 70])
    pixels = whole(images)[index].double()
    total, squares = Shards(images).sums(index)
    assert torch.equal(total, pixels.sum(dim=(0, 2, 3)))
    assert torch.equal(squares, pixels.square().sum(dim=(0, 2, 3)))


def test_what_is_pickled_is_where_they_are(images: ImageSet) -> None:
    shards = Shards(images)
    index = torch.tensor([5, 100])
    shards[index]
    content = pickle.dumps(shards)
    assert len(content) < 1000
    again = pickle.loads(content)
    assert torch.equal(again[index], whole(images)[index])


def test_what_is_read_is_no_view_of_the_file(images: ImageSet) -> None:
    shards, index = Shards(images), torch.tensor([0])
    shards[index].fill_(7)
    assert torch.equal(shards[index], whole(images)[index])


def test_as_long_as_one_lives_its_set_stays(images: ImageSet) -> None:
    shards = Shards(images)
    assert not images.delete()
    del shards
    assert images.delete()
    with pytest.raises(DataError, match="decoded images are gone"):
        Shards(images)


def test_a_shard_that_is_cut_is_not_read(images: ImageSet) -> None:
    shards = Shards(images)
    path = images.place(1).with_suffix(".npy")
    path.write_bytes(path.read_bytes()[:-1])
    shards[torch.tensor([0])]
    with pytest.raises(DataError, match="gone"):
        shards[torch.tensor([64])]
