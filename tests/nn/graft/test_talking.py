"""CaiT of SKA's code: talking heads of any width, which a graft keeps."""

from __future__ import annotations

import pytest
import torch

from tests.nn.graft.networks import images, ska_cait
from vitnas.errors import ConfigError
from vitnas.nn.graft import graft
from vitnas.nn.graft.talking import TalkingAttention, mix_heads


def test_maps_are_mixed_before_and_after_softmax() -> None:
    attention = TalkingAttention(8, 2, head_dim=3).eval()
    x = torch.randn(2, 5, 8)
    query, key, value = (
        part.unflatten(2, (2, 3)).transpose(1, 2) for part in attention.qkv(x).chunk(3, dim=-1)
    )
    logits = query @ key.mT / 3**0.5
    maps = torch.einsum("bhij,gh->bgij", logits, attention.proj_l.weight).softmax(dim=-1)
    maps = torch.einsum("bhij,gh->bgij", maps, attention.proj_w.weight)
    wanted = attention.proj((maps @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(x), wanted)


def test_a_context_is_looked_at_and_does_not_look() -> None:
    attention = TalkingAttention(8, 2, head_dim=4).eval()
    token, others = torch.randn(2, 1, 8), torch.randn(2, 5, 8)
    whole = attention(torch.cat([token, others], dim=1))
    torch.testing.assert_close(attention(token, others), whole[:, :1])


def test_the_class_token_alone_has_a_norm() -> None:
    block = ska_cait().blocks_token_only[0]
    token, others = torch.randn(2, 1, 24), torch.randn(2, 5, 24)
    mixed = token + block.gamma_1 * block.attn(block.norm1(token), others)
    wanted = mixed + block.gamma_2 * block.mlp(block.norm2(mixed))
    torch.testing.assert_close(block(others, token), wanted)


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_a_graft_keeps_what_mixes_the_maps(mixer: str) -> None:
    model = ska_cait()
    old = model.blocks[0].attn
    done = graft(model, mixer=mixer)
    new = model.blocks[0].attn.mixer
    assert new.proj_l is old.proj_l
    assert new.proj_w is old.proj_w
    assert done.left == ("blocks_token_only.0.attn", "blocks_token_only.1.attn")
    with torch.no_grad():
        before = model(images())
        new.proj_l.weight.zero_()
        assert not torch.equal(model(images()), before)


def test_the_number_of_heads_stays() -> None:
    with pytest.raises(ConfigError, match="num_heads = 2: what mixes the maps"):
        graft(ska_cait(), mixer="ska", num_heads=2)


def test_a_layer_mixes_heads() -> None:
    layer, maps = torch.nn.Linear(3, 3), torch.randn(2, 3, 4, 5)
    wanted = torch.einsum("bhij,gh->bgij", maps, layer.weight) + layer.bias[:, None, None]
    torch.testing.assert_close(mix_heads(layer, maps), wanted)
