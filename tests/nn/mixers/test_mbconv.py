"""The inverted residual."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from tests.contracts import GRID, WIDTH, MixerContract, place_of, tokens_for
from tests.nn.networks import copy_in_order, settled, timms_inverted_residual
from vitnas.nn.block import Block
from vitnas.nn.mixers import Place

ACTS = {"relu6": nn.ReLU6, "hard_swish": nn.Hardswish, "silu": nn.SiLU}


class TestContract(MixerContract):
    mixer = "mbconv"
    variants: ClassVar = {
        "default": {},
        "without expansion": {"expansion": 1.0, "kernel_size": 5},
        "squeeze-excitation": {"se_ratio": 0.25, "expansion": 2.6, "conv_act": "silu"},
    }


def on_picture(x: Tensor) -> Tensor:
    return x.mT.reshape(3, WIDTH, *GRID)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"expansion": 6.0, "kernel_size": 5, "conv_act": "hard_swish"},
        {"expansion": 3.0, "kernel_size": 7, "conv_act": "silu", "se_ratio": 0.25},
        {"expansion": 1.0, "se_ratio": 0.5},
    ],
)
def test_a_block_of_it_is_timms(fields: dict[str, Any]) -> None:
    torch.manual_seed(0)
    place = place_of("mbconv", **fields)
    stage = place.stage_config
    block = settled(Block(place))
    theirs = timms_inverted_residual(
        WIDTH,
        WIDTH,
        ACTS[stage.conv_act],
        stage.hidden_channels / WIDTH,
        kernel=stage.kernel,
        squeezed=stage.se_channels,
    ).eval()
    copy_in_order(block, theirs)
    x = tokens_for(place)
    torch.testing.assert_close(block(x, place.grid), theirs(on_picture(x)).flatten(2).mT)


def test_a_block_of_it_has_no_norm_before_and_no_mlp_after() -> None:
    for ratio in (0.0, 2.0):
        block = Block(place_of("mbconv", mlp_ratio=ratio, residual="lrc"))
        parts = {name.split(".")[0] for name, _ in block.named_parameters()}
        assert parts == {"mixer", "residual1"}


def test_squeeze_excitation_has_one_channel_at_least() -> None:
    place: Place = place_of("mbconv", se_ratio=0.01)
    assert place.stage_config.se_channels == 1
    assert place_of("mbconv").stage_config.se_channels == 0
