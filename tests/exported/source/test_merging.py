"""Attentions that differ in little are one class, or one and what is around it."""

from __future__ import annotations

from typing import Any

from tests.exported.source.parity import distance, source_of
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig

CLOSE = 1e-5
PLAIN = {"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 2, "depth": 2}
GROUPED = PLAIN | {"groups": (4, 1)}


def classes(*stages: dict[str, Any], **fields: Any) -> list[str]:
    """The attentions of a network, after it was compared with its file."""
    tree = {"img_size": 32, "num_classes": 7, "stem": {"stride": 4}, "stages": stages}
    config = validate(ModelConfig, {**tree, **fields})
    assert distance(config) < CLOSE
    lines = source_of(config).splitlines()
    return [line[6:-1] for line in lines if line.startswith("class ") and "Attention" in line]


def test_re_attention_is_an_argument_where_not_all_have_it() -> None:
    assert classes(PLAIN, reattention_blocks=1) == ["Attention(nn.Module)"]
    assert classes(PLAIN, reattention_blocks=2) == ["ReAttention(nn.Module)"]
    masked = PLAIN | {"mask_diagonal": True, "depth": 3}
    assert classes(masked, reattention_blocks=1) == ["Attention(nn.Module)"]


def test_groups_are_around_a_plain_attention() -> None:
    assert classes(GROUPED, PLAIN) == ["Attention(nn.Module)", "GroupAttention(Attention)"]
    both = {"reattention_blocks": 1}
    assert classes(GROUPED, PLAIN, **both) == ["Attention(nn.Module)", "GroupAttention(Attention)"]
    scaled = {"temperature": {"kind": "learnable"}}
    assert classes(GROUPED, PLAIN, **scaled)[1] == "GroupAttention(Attention)"


def test_groups_stand_alone_beside_another_kind_of_attention() -> None:
    all_mix = {"reattention_blocks": 2}
    found = classes(GROUPED, PLAIN, **all_mix)
    assert found == ["GroupAttention(nn.Module)", "ReAttention(nn.Module)"]
    broad = {"broad": {"gamma": 0.4}}
    assert classes(GROUPED, PLAIN, **broad)[0] == "GroupAttention(nn.Module)"


def test_orders_that_are_not_inverted_are_only_of_passes_with_groups() -> None:
    assert classes(GROUPED, permute_inverse=False)
    assert classes(GROUPED | {"groups": (1, 4, 2)}, permute="second")
