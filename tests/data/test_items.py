"""Items of other packages' data sets: digests, sizes, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch.utils.data import IterableDataset

from vitnas.config.data import DataConfig
from vitnas.data.items import Item, digest_of, is_in_turn, items, resized, total_digest
from vitnas.errors import DataError

DATA = [(torch.full((1, 4, 4), shade, dtype=torch.uint8), shade % 3) for shade in range(10)]


def test_some_items_are_read_by_their_numbers() -> None:
    found = list(items(DataConfig(), DATA, range(3, 6)))
    assert [item[1] for item in found if isinstance(item, tuple)] == [0, 1, 2]
    assert len(list(items(DataConfig(), DATA))) == 10
    assert not is_in_turn(DATA)


def test_what_has_no_numbers_is_read_in_turn() -> None:
    class InTurn(IterableDataset[Item]):
        def __iter__(self) -> Iterator[Item]:
            return iter(DATA)

    assert is_in_turn(InTurn())
    assert len(list(items(DataConfig(), InTurn()))) == 10


def test_a_digest_is_of_pixels_and_class() -> None:
    pixels, label = DATA[4]
    assert digest_of((pixels.clone(), label)) == digest_of(DATA[4])
    assert digest_of((pixels, label + 1)) != digest_of(DATA[4]) != digest_of((pixels + 1, label))
    assert len(digest_of(DATA[4])) == len(total_digest(b"")) == 16


def test_an_image_of_the_right_size_stays_as_it_is() -> None:
    pixels = DATA[4][0]
    assert resized(pixels, (4, 4)) is pixels
    assert resized(pixels, (8, 2)).unique().tolist() == [4]


def test_a_class_below_zero_is_refused() -> None:
    with pytest.raises(DataError, match="item 0 has the label -1, and labels count from 0"):
        list(items(DataConfig(), [(DATA[0][0], -1)]))
