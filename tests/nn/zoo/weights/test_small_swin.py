"""Checkpoints of SKA's Swin for small images give that code's scores, through the real command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.small_swin import SmallSwin
from tests.nn.zoo.weights.through import (
    check_scores,
    check_where_it_will_run,
    converted,
    refused,
)
from vitnas.nn.graft.families import mixers_of

MIXERS = {"attention": "PlacedAttention", "stu": "ska", "cstu": "cska"}
FIRST = "stage1.layers.0.0.attention_block.fn.fn."


def code_of(kind: str, **more: Any) -> nn.Module:
    """8x8, 4x4 and 4x4 tokens: four windows, then one."""
    sizes = {"width": 16, "depths": (2, 4, 2), "heads": (2, 4, 8), "head_dim": 8}
    sizes |= {"factors": (2, 2, 1), "img_size": 16}
    return _with_masks(SmallSwin(**{**sizes, "kind": kind, **more}))


def _with_masks(code: nn.Module) -> nn.Module:
    """As `filled`, which draws other masks."""
    masks = {n: p.clone() for n, p in code.named_parameters() if n.endswith("_mask")}
    code = filled(code)
    code.load_state_dict(masks, strict=False)
    return code


@pytest.mark.parametrize("kind", ["stu", "cstu"])
def test_each_window_has_a_key(kind: str) -> None:
    code = code_of(kind)
    ours = converted(code, "ska_small")
    check_scores(code, ours, 16)
    assert set(mixers_of(ours).values()) == {MIXERS[kind]}
    assert (ours.image_hw, ours.num_classes) == ((16, 16), 7)


def test_attention_has_heads_of_32() -> None:
    sizes = {"width": 32, "heads": (1, 2), "depths": (2, 2), "factors": (1, 2), "img_size": 24}
    code = code_of("attention", **sizes, head_dim=32, channels=1)
    ours = converted(code, "ska_small", None, "--img-size", "24")
    check_scores(code, ours, 24, channels=1)
    assert set(mixers_of(ours).values()) == {"PlacedAttention"}


def test_masks_are_left_out_with_the_reason() -> None:
    converted(code_of("stu"), "ska_small")
    said = "right_mask (a constant, which the network computes itself)"
    assert Path("net/README.md").read_text().count(said) == 4


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ({}, ("--img-size", "64"), "--img-size = 64: these weights are for images of 16x16"),
        ({f"{FIRST}k": (2, 4, 9, 8)}, (), r"k is \[2, 4, 9, 8\] for \[2, 64, 8\]"),
        ({f"{FIRST}pos_embedding": (16, 16)}, (), "not ska_small weights"),
        ({f"{FIRST}to_qv.weight": None}, (), f"1 missing .{FIRST}to_qv.weight"),
    ],
)
def test_other_shapes_are_refused(change: dict[str, Any], more: tuple[str, ...], said: str) -> None:
    state = dict(code_of("stu").state_dict())
    for name, shape in change.items():
        state.pop(name, None)
        if shape:
            state[name] = torch.zeros(shape)
    refused(state, "ska_small", *more, match=said)


def test_a_weight_that_is_not_finite_is_refused() -> None:
    state = dict(code_of("stu").state_dict())
    state[f"{FIRST}k"] = torch.full_like(state[f"{FIRST}k"], float("-inf"))
    refused(state, "ska_small", match=f"a.pth: '{FIRST}k' has numbers that are not finite")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["stu", "cstu"])
def test_the_folder_is_checked_where_it_will_run(kind: str) -> None:
    """In shifted windows the logits are masked."""
    sizes = {"depths": (2, 2), "heads": (2, 4), "factors": (2, 2), "channels": 1, "classes": 10}
    check_where_it_will_run(code_of(kind, **sizes), MIXERS[kind])


@pytest.mark.nightly
@pytest.mark.parametrize("kind", MIXERS)
def test_at_full_size(kind: str) -> None:
    heads, factors = (3, 6, 12, 24), (2, 2, 2, 1)
    sizes = {"width": 96, "depths": (2, 2, 6, 2), "heads": heads, "factors": factors}
    code = code_of(kind, **sizes, head_dim=32, img_size=32, classes=10)
    ours = converted(code, "ska_small")
    check_scores(code, ours, 32)
