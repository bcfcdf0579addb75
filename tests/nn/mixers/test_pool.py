"""PoolFormer's mixer."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from timm.models.metaformer import Pooling

from tests.contracts import GRID, MixerContract, place_of, tokens_for
from vitnas.nn.mixers import build_mixer


class TestContract(MixerContract):
    mixer = "pool"
    variants: ClassVar = {"default": {}, "large": {"kernel_size": 7}}


@pytest.mark.parametrize("kernel", [3, 5])
def test_is_timms_pooling(kernel: int) -> None:
    place = place_of("pool", kernel_size=kernel)
    x = tokens_for(place)
    expected = Pooling(kernel)(x.mT.reshape(3, 16, *GRID)).flatten(2).mT
    torch.testing.assert_close(build_mixer(place)(x, place.grid), expected)


def test_a_constant_picture_gives_zero() -> None:
    """Also at the border: padding does not count."""
    place = place_of("pool")
    out = build_mixer(place)(torch.full((1, 24, 16), 3.0), place.grid)
    torch.testing.assert_close(out, torch.zeros(1, 24, 16))
