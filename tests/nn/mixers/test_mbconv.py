"""The inverted residual."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
import torch
from timm.models._efficientnet_blocks import DepthwiseSeparableConv, SqueezeExcite
from timm.models._efficientnet_blocks import InvertedResidual as Timms
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from tests.contracts import GRID, WIDTH, MixerContract, place_of, tokens_for
from vitnas.nn.block import Block
from vitnas.nn.mixers import Place, build_mixer

ACTS = {"relu6": nn.ReLU6, "hard_swish": nn.Hardswish, "silu": nn.SiLU}


class TestContract(MixerContract):
    mixer = "mbconv"
    variants: ClassVar = {
        "default": {},
        "without expansion": {"expansion": 1.0, "kernel_size": 5},
        "squeeze-excitation": {"se_ratio": 0.25, "expansion": 2.6, "conv_act": "silu"},
    }


def trained(module: nn.Module) -> nn.Module:
    """With statistics and gains as a training leaves them: of no norm the ones it starts with."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            for values in (part.running_mean, part.bias.data):
                assert values is not None
                values.normal_()
            for values in (part.running_var, part.weight.data):
                assert values is not None
                values.uniform_(0.5, 2.0)
    return module.eval()


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
    block = trained(Block(place))
    ratio = stage.hidden_channels / WIDTH
    theirs: nn.Module = (DepthwiseSeparableConv if ratio == 1.0 else Timms)(
        WIDTH,
        WIDTH,
        dw_kernel_size=stage.kernel,
        act_layer=ACTS[stage.conv_act],
        se_layer=(
            lambda channels, **_: SqueezeExcite(
                channels, rd_channels=stage.se_channels, act_layer=ACTS[stage.conv_act]
            )
        )
        if stage.se_ratio
        else None,
        **({} if ratio == 1.0 else {"exp_ratio": ratio}),
    ).eval()
    ours = list(block.state_dict().values())
    copied = {
        name: value.reshape(mine.shape)
        for (name, mine), value in zip(theirs.state_dict().items(), ours, strict=True)
    }
    theirs.load_state_dict(copied)
    x = tokens_for(place)
    torch.testing.assert_close(block(x, place.grid), theirs(on_picture(x)).flatten(2).mT)


def test_a_block_of_it_has_no_norm_before_and_no_mlp_after() -> None:
    for ratio in (0.0, 2.0):
        block = Block(place_of("mbconv", mlp_ratio=ratio, residual="lrc"))
        parts = {name.split(".")[0] for name, _ in block.named_parameters()}
        assert parts == {"mixer", "residual1"}


def test_every_norm_folds_into_the_convolution_before_it() -> None:
    torch.manual_seed(0)
    place = place_of("mbconv", se_ratio=0.25)
    mixer = trained(build_mixer(place))
    x = tokens_for(place)
    whole = mixer(x, place.grid)
    layers = list(mixer.get_submodule("layers").children())
    folded: list[nn.Module] = []
    for layer in layers:
        if isinstance(layer, nn.BatchNorm2d):
            assert isinstance(folded[-1], nn.Conv2d)
            folded[-1] = fuse_conv_bn_eval(folded[-1], layer)
        else:
            folded.append(layer)
    assert len(folded) == len(layers) - 3
    picture = nn.Sequential(*folded)(on_picture(x))
    torch.testing.assert_close(picture.flatten(2).mT, whole, rtol=1e-4, atol=1e-4)


def test_squeeze_excitation_has_one_channel_at_least() -> None:
    place: Place = place_of("mbconv", se_ratio=0.01)
    assert place.stage_config.se_channels == 1
    assert place_of("mbconv").stage_config.se_channels == 0
