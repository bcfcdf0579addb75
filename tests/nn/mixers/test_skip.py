"""No block at all: what stands before it stays, and a plain CNN is a point of a space."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch

from tests.contracts import MixerContract, place_of, tokens_for
from vitnas.baselines.sizes import price
from vitnas.config.baseline import Baseline
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import closed_form
from vitnas.nn.block import Block


class TestContract(MixerContract):
    mixer = "skip"
    variants: ClassVar = {"default": {}, "class token": {"class_token": True}}


@pytest.mark.parametrize("residual", ["plain", "lrc", "scale"])
def test_its_block_gives_its_input_and_has_no_weights(residual: str) -> None:
    block = Block(place_of("skip", residual=residual, mlp_ratio=2.0), drop_path=0.5).train()
    x = tokens_for(place_of("skip"))
    assert block(x, place_of("skip").grid) is x
    assert not block.state_dict()


def plain_cnn(width: int) -> ModelConfig:
    """What tutorials write: convolutions with pooling behind each."""
    skips = [{"token_mixer": "skip", "embed_dim": width * 2**index} for index in range(3)]
    tree = {
        "img_size": 32,
        "in_chans": 1,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2, "pools": 1},
        "downsample": "vgg",
        "pos_embed": "none",
        "global_pool": "flatten",
        "head": {"norm": "none"},
        "stages": skips,
    }
    return ModelConfig.model_validate(tree)


@pytest.mark.parametrize("width", [4, 9])
def test_the_cnn_of_tutorials_is_stages_of_it(width: int) -> None:
    """But for the bias of the stem's convolution, which the baseline does not have."""
    vgg = Baseline(family="vgg", width=width, image_hw=(32, 32), in_chans=1, num_classes=10)
    cost = closed_form(plain_cnn(width))
    assert cost.flops == price(vgg).flops
    assert cost.num_params == price(vgg).num_params + width


def test_nothing_but_the_width_of_such_a_stage_matters() -> None:
    tree = plain_cnn(4).to_tree()
    tree["stages"][1] |= {"depth": 3, "residual": "lrc", "kernel_size": 7, "mlp_ratio": 2.0}
    assert ModelConfig.model_validate(tree).key == plain_cnn(4).key
    pattern = {**tree, "stages": [{**stage} for stage in tree["stages"]]}
    pattern["stages"][2] |= {"token_mixer": {"pattern": ["skip"]}, "depth": 2}
    assert ModelConfig.model_validate(pattern).key == plain_cnn(4).key


def test_the_network_runs_and_learns() -> None:
    from vitnas.nn.model import build_model

    model = build_model(plain_cnn(4))
    model(torch.randn(2, 1, 32, 32)).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())
