"""The separable convolution."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
from timm.models.metaformer import SepConv

from tests.contracts import GRID, MixerContract, place_of, tokens_for
from vitnas.nn.mixers import build_mixer


class TestContract(MixerContract):
    mixer = "dwconv"
    variants: ClassVar = {
        "default": {},
        "small": {"kernel_size": 3, "expansion": 1.3},
    }


@pytest.mark.parametrize("kernel", [3, 5, 7])
def test_is_timms_separable_convolution(kernel: int) -> None:
    torch.manual_seed(0)
    place = place_of("dwconv", kernel_size=kernel)
    mixer = build_mixer(place)
    theirs = SepConv(16, kernel_size=kernel, padding=kernel // 2)
    state = {
        "act1.scale": torch.tensor([0.9]),
        "act1.bias": torch.tensor([-0.4]),
        "pwconv1.weight": mixer.expand.weight[..., None, None],
        "dwconv.weight": mixer.depthwise.weight,
        "pwconv2.weight": mixer.reduce.weight[..., None, None],
    }
    theirs.load_state_dict(state)
    with torch.no_grad():
        mixer.act.scale.copy_(state["act1.scale"])
        mixer.act.bias.copy_(state["act1.bias"])
    x = tokens_for(place)
    expected = theirs(x.mT.reshape(3, 16, *GRID)).flatten(2).mT
    torch.testing.assert_close(mixer(x, place.grid), expected)
