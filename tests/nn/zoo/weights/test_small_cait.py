"""Checkpoints of SKA's CaiT for small images give that code's scores, through the real command."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.small_cait import SmallCait
from tests.nn.zoo.weights.through import (
    check_scores,
    check_where_it_will_run,
    converted,
    refused,
)
from vitnas.nn.graft.families import mixers_of

MIXERS = {"attention": "TalkingAttention", "stu": "ska", "cstu": "cska"}
FIRST = "patch_transformer.layers.0.0.fn.fn."


def code_of(kind: str, **more: Any) -> nn.Module:
    sizes = {"width": 24, "depth": 2, "heads": 3, "dim_head": 8, "hidden": 36}
    return filled(SmallCait(**{**sizes, "kind": kind, **more}))


@pytest.mark.parametrize("kind", MIXERS)
def test_scores(kind: str) -> None:
    code = code_of(kind)
    ours = converted(code, "ska_small")
    check_scores(code, ours, 16)
    assert set(mixers_of(ours).values()) == {MIXERS[kind]}
    assert (ours.image_hw, ours.num_classes) == ((16, 16), 7)


@pytest.mark.parametrize("kind", ["attention", "stu"])
def test_heads_have_any_width(kind: str) -> None:
    code = code_of(kind, heads=5, dim_head=6, class_depth=1, img_size=12, patch=2)
    check_scores(code, converted(code, "ska_small"), 12)


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ({}, ("--img-size", "64"), "--img-size = 64: these weights are for images of 16x16"),
        ({f"{FIRST}k": (3, 64, 8)}, (), r"k is \[3, 64, 8\] for \[3, 16, 8\]"),
        ({f"{FIRST}to_v.weight": None}, (), f"1 missing .{FIRST}to_v.weight"),
        (
            {"to_patch_embedding.1.weight": None},
            (),
            "1.weight is missing, which every ska_small_cait",
        ),
    ],
)
def test_other_shapes_are_refused(change: dict[str, Any], more: tuple[str, ...], said: str) -> None:
    state = dict(code_of("stu").state_dict())
    for name, shape in change.items():
        state.pop(name)
        if shape:
            state[name] = torch.zeros(shape)
    refused(state, "ska_small", *more, match=said)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", MIXERS)
def test_the_folder_is_checked_where_it_will_run(kind: str) -> None:
    check_where_it_will_run(code_of(kind, depth=1, channels=1, classes=10), MIXERS[kind])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "heads", "dim_head", "patch"),
    [("attention", 8, 64, 4), ("stu", 10, 62, 2), ("cstu", 8, 64, 4)],
)
def test_at_full_size(kind: str, heads: int, dim_head: int, patch: int) -> None:
    sizes = {"width": 512, "depth": 6, "hidden": 512, "img_size": 32, "classes": 10}
    code = code_of(kind, heads=heads, dim_head=dim_head, patch=patch, **sizes)
    check_scores(code, converted(code, "ska_small"), 32)
