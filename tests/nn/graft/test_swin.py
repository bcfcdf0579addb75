"""Swin of SKA's code: windows that shift, with one table of positions for all heads."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.nn.graft.networks import images, ska_swin
from vitnas.nn.graft.swin import Places


def test_places_are_those_of_the_key_minus_those_of_the_query() -> None:
    places = Places((4, 4), 2, shift=0)
    with torch.no_grad():
        places.table.copy_(torch.arange(9).reshape(3, 3))
    offset = places.offset()
    assert offset.shape == (1, 1, 4, 4)
    assert offset[0, 0, 0].tolist() == [4, 5, 7, 8]  # same, right, below, both
    assert offset[0, 0, 3].tolist() == [0, 1, 3, 4]


def test_after_a_shift_opposite_sides_do_not_see_each_other() -> None:
    offset = Places((4, 4), 2, shift=1).offset()[:, 0]
    hidden = offset.isinf()
    assert not hidden[0].any()
    assert hidden[1][0].tolist() == [False, True, False, True]
    assert hidden[2][0].tolist() == [False, False, True, True]
    assert hidden[3][0].tolist() == [False, True, True, True]


def test_one_window_is_shifted_too() -> None:
    assert Places((4, 4), 4, shift=2).offset().isinf().any()


def test_a_shift_comes_back() -> None:
    places, tokens = Places((4, 4), 2, shift=1), torch.randn(2, 16, 3)
    moved = places.shifted(tokens)
    assert torch.equal(moved[:, 0], tokens[:, 5])
    assert torch.equal(places.back(moved), tokens)


def test_a_token_sees_its_window_alone() -> None:
    attention = ska_swin().stages[0].blocks[0].attn
    x = torch.randn(1, 64, 16)
    other = x.clone()
    other[:, 63] += 1.0
    changed = (attention(x) != attention(other)).any(dim=2)[0].reshape(8, 8)
    assert changed[4:, 4:].all()
    assert changed.sum() == 16


def test_every_second_block_is_shifted() -> None:
    shifts = [block.attn.places.shift for stage in ska_swin().stages for block in stage.blocks]
    assert shifts == [0, 2, 0, 2]
    assert ska_swin()(images()).shape == (2, 5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"img_size": (16, 32)}, "images are square, not 16x32"),
        ({"img_size": 24}, "stage 1 has 6x6 tokens, which windows of 4x4 do not cut"),
        ({"depths": (2,)}, "argument"),
    ],
)
def test_what_cannot_be_cut_is_an_error(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ska_swin(**options)
