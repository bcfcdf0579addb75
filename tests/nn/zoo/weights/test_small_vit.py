"""Checkpoints of SKA's ViT with CSTU give that code's scores, through the real command."""

from __future__ import annotations

import pytest
import torch

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.small_vit import SmallCstuVit
from tests.nn.zoo.weights.through import (
    check_scores,
    check_where_it_will_run,
    converted,
    refused,
)
from vitnas import api
from vitnas.nn.graft.families import mixers_of
from vitnas.nn.zoo.weights.small_vit import patch_of, pixels_last

ROUNDED = 1e-6
"""The class token's key is multiplied by their exponential, rounded to single precision."""


@pytest.mark.parametrize(("heads", "channels"), [(2, 3), (3, 1)])
def test_each_token_gets_the_mixture_of_the_next_one(heads: int, channels: int) -> None:
    code = filled(SmallCstuVit(24, 2, heads, hidden=36, channels=channels))
    ours = converted(code, "ska_small")
    check_scores(code, ours, 16, channels, exact=ROUNDED)
    assert set(mixers_of(ours).values()) == {"cska"}
    assert (ours.image_hw, ours.num_classes) == ((16, 16), 7)


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ({}, ("--img-size", "64"), "--img-size = 64: these weights are for images of 16x16"),
        ({"k2": (2, 9, 12)}, (), r"k2 is \[2, 9, 12\] for \[2, 17, 12\]"),
        ({"temperature": None}, (), "1 missing .transformer.layers.0.0.fn.temperature"),
        ({"to_k.weight": (2, 12, 3, 3)}, (), "to_k.weight is .* for .34, 12, 3, 3"),
    ],
)
def test_other_shapes_are_refused(
    change: dict[str, tuple[int, ...] | None], more: tuple[str, ...], said: str
) -> None:
    state = dict(SmallCstuVit(24, 1, 2, hidden=24).state_dict())
    for name, shape in change.items():
        whole = f"transformer.layers.0.0.fn.{name}"
        state.pop(whole)
        if shape:
            state[whole] = torch.zeros(shape)
    refused(state, "ska_small", *more, match=said)


def test_a_patch_is_known_by_its_numbers() -> None:
    name = "to_patch_embedding.to_patch_tokens.2.weight"
    found = [patch_of({name: (8, pixels)}) for pixels in (240, 20, 15, 7)]
    assert found == [(3, 4), (1, 2), (3, 1), None]
    assert pixels_last(2)(torch.arange(8)).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]


@pytest.mark.slow
def test_the_folder_is_diagnosed() -> None:
    converted(filled(SmallCstuVit(24, 2, 2, hidden=36, channels=1, classes=10)), "ska_small")
    found, folder = api.diagnose("net", data="digits", out="found", images=8)
    assert {"maps", "similarity", "rollout"} <= set(found.findings)
    assert (folder / "diagnosis.json").is_file()


@pytest.mark.nightly
def test_the_folder_is_checked_where_it_will_run() -> None:
    code = filled(SmallCstuVit(24, 1, 2, hidden=36, channels=1, classes=10))
    check_where_it_will_run(code, "cska")


@pytest.mark.nightly
def test_at_full_size() -> None:
    code = filled(SmallCstuVit(512, 6, 8, hidden=512, img_size=32, classes=10))
    ours = converted(code, "ska_small")
    check_scores(code, ours, 32, exact=ROUNDED)
