"""Query and value are found in every form that timm stores them in."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.nn.graft.networks import ALL
from vitnas.nn.graft import graft
from vitnas.nn.graft.families import family_of
from vitnas.nn.graft.projections import projections_of

OTHERS = ("swin", "ska_swin", "cvt", "ska_cvt", "cait", "ska_cait")
"""Whose attention does more than to mix values, or needs a whole grid."""


@pytest.mark.parametrize("name", [name for name in ALL if name not in OTHERS])
def test_a_projection_gives_what_the_attention_multiplies(name: str) -> None:
    """The values that the attention mixes, with a map that is the identity."""
    model = ALL[name]()
    attention = family_of(model).sites(model)[-1].attention
    found = projections_of(attention)
    x = torch.randn(2, 1, attention.proj.out_features)  # one token: its map is 1
    attention.fused_attn = True
    value = nn.functional.linear(x, found.weight[1], None if found.bias is None else found.bias[1])
    size = ((1, 1),) if name in ("pvt", "lvt") else ()
    torch.testing.assert_close(attention(x, *size), attention.proj(value))


@pytest.mark.parametrize("name", ["eva", "pvt", "caformer", "lvt"])
def test_they_are_kept_and_what_was_frozen_stays_so(name: str) -> None:
    model, before = ALL[name](), ALL[name]()
    model.requires_grad_(False)
    for number, site in enumerate(graft(model, mixer="ska").replaced):
        mixer = model.get_submodule(site).mixer
        found = projections_of(family_of(before).sites(before)[number].attention)
        assert torch.equal(mixer.qv.weight, torch.cat(found.weight))
        if found.bias is not None:
            assert torch.equal(mixer.qv.bias, torch.cat(found.bias))
        assert not any(p.requires_grad for p in (*mixer.qv.parameters(), *mixer.proj.parameters()))
        assert mixer.static_key.requires_grad
