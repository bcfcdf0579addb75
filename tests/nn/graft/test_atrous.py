"""RASA's attention: queries of three dilations, and what a static key keeps of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.nn.graft.networks import images, lvt
from vitnas.nn.graft import graft
from vitnas.nn.graft.atrous import AtrousAttention, AtrousQuery

NAME = "stages.1.blocks.0.attn"


def heads(x: Tensor) -> Tensor:
    return x.unflatten(2, (2, -1)).transpose(1, 2)


def test_one_convolution_at_three_dilations() -> None:
    torch.manual_seed(0)
    atrous, query = AtrousQuery(4), torch.randn(1, 30, 4)
    picture = query.transpose(1, 2).unflatten(2, (5, 6))
    convolved = [
        F.conv2d(picture, atrous.weight, padding=rate, dilation=rate, groups=4)
        for rate in (1, 3, 5)
    ]
    expected = sum(one.sigmoid() * one for one in convolved)
    torch.testing.assert_close(atrous(query, (5, 6)), expected.flatten(2).transpose(1, 2))


@pytest.mark.parametrize("fused", [True, False])
def test_the_attention_by_hand(fused: bool) -> None:
    torch.manual_seed(0)
    attention, x = AtrousAttention(8, 2, reduction=2).eval(), torch.randn(3, 24, 8)
    attention.fused_attn = fused
    less = attention.sr(x.transpose(1, 2).unflatten(2, (4, 6))).flatten(2).transpose(1, 2)
    key, value = map(heads, attention.kv(attention.norm(less)).chunk(2, dim=-1))
    query = heads(attention.atrous(attention.q(x), (4, 6)))
    assert key.shape == (3, 2, 6, 4)
    mixed = (query @ key.transpose(-2, -1) / 2).softmax(dim=-1) @ value
    expected = attention.proj(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x, (4, 6)), expected)


def test_a_static_key_keeps_the_queries_and_the_reduction() -> None:
    model, before = lvt(), lvt().get_submodule(NAME)
    graft(model, mixer="ska")
    mixer: Any = model.get_submodule(NAME).mixer
    assert mixer.static_key.shape == (2, 4, 8)
    assert torch.equal(mixer.atrous.weight, before.atrous.weight)
    x = torch.randn(2, 16, 16)
    less = before.norm(before.sr(x.transpose(1, 2).unflatten(2, (4, 4))).flatten(2).mT)
    query, value = before.atrous(before.q(x), (4, 4)), before.kv(less).chunk(2, dim=-1)[1]
    logits = 8**-0.5 * heads(query) @ mixer.static_key.mT
    mixed = (logits.softmax(dim=-1) @ heads(value)).transpose(1, 2).flatten(2)
    torch.testing.assert_close(model.get_submodule(NAME)(x, (4, 4)), before.proj(mixed))


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_what_is_kept_learns(mixer: str) -> None:
    model = lvt()
    graft(model, mixer=mixer)
    model(images()).square().sum().backward()
    for part in ("atrous.weight", "reduction.sr.weight", "proj.weight"):
        assert model.get_parameter(f"{NAME}.mixer.{part}").grad.any()
