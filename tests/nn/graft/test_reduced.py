"""Static keys in PVT: N queries, M values, and what reduces the tokens is kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.nn.graft.networks import images, pvt
from vitnas.nn.graft import graft
from vitnas.nn.layers.resizing import TokenLayout

NAME = "stages.0.blocks.0.attn"


@pytest.mark.parametrize("linear", [False, True])
def test_the_formula(linear: bool) -> None:
    model, before = pvt(linear=linear), pvt(linear=linear).get_submodule(NAME)
    graft(model, mixer="ska")
    mixer: Any = model.get_submodule(NAME).mixer
    values = 49 if linear else 4
    assert mixer.static_key.shape == (2, values, 8)
    x = torch.randn(2, 16, 16, generator=torch.Generator().manual_seed(4))
    picture = x.transpose(1, 2).reshape(2, 16, 4, 4)
    if linear:
        picture = before.pool(picture)
    less = before.norm(before.sr(picture).flatten(2).transpose(1, 2))
    if linear:
        less = before.act(less)
    query = before.q(x).reshape(2, 16, 2, 8).transpose(1, 2)
    value = before.kv(less).reshape(2, values, 2, 2, 8).permute(2, 0, 3, 1, 4)[1]
    logits = 8**-0.5 * query @ mixer.static_key.transpose(-2, -1)
    mixed = (logits.softmax(-1) @ value).transpose(1, 2).flatten(2)
    torch.testing.assert_close(model.get_submodule(NAME)(x, (4, 4)), before.proj(mixed))


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_what_reduces_the_tokens_is_kept(mixer: str) -> None:
    model, before = pvt(), pvt().state_dict()
    graft(model, mixer=mixer)
    after = model.state_dict()
    for part in ("sr.weight", "sr.bias", "norm.weight", "norm.bias"):
        assert torch.equal(after[f"{NAME}.mixer.reduction.{part}"], before[f"{NAME}.{part}"])
    model(images()).square().sum().backward()
    for part in ("sr.weight", "norm.weight"):
        assert model.get_parameter(f"{NAME}.mixer.reduction.{part}").grad.any()


def test_a_token_has_no_key_of_its_own_among_fewer() -> None:
    model, masked = pvt(), pvt()
    for network, mask in ((model, False), (masked, True)):
        torch.manual_seed(0)
        graft(network, mixer="ska", blocks="stages:0", mask_diagonal=mask)
    assert torch.equal(model(images()), masked(images()))


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_another_size_has_another_number_of_both(mixer: str) -> None:
    model, larger = pvt(), pvt()
    larger.image_hw = (32, 32)
    for network in (model, larger):
        graft(network, mixer=mixer)
    name = f"{NAME}.mixer"
    module: Any = model.get_submodule(name)
    changes = module.resized(TokenLayout((4, 4), 0), TokenLayout((8, 8), 0))
    wanted: Any = larger.get_submodule(name)
    shapes = {change.name: change.value.shape for change in changes if change.name == "static_key"}
    shapes |= {
        c.name: c.value.shape
        for c in changes
        if c.owner is getattr(module, "key", None) and c.name != "out_channels"
    }
    held = wanted if mixer == "ska" else wanted.key
    assert shapes
    assert shapes == {name: getattr(held, name).shape for name in shapes}
