"""Checkpoints of DeepViT's code give that code's scores, through the real command."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.deepvit import Deepvit
from tests.nn.zoo.weights.through import MHSA, RUNS, check_scores, converted


def small_deepvit(**fields: Any) -> dict[str, Any]:
    stage = MHSA | {"depth": 3, "embed_dim": 48, "num_heads": 12, "mlp_ratio": 3.0}
    return {"class_token": True, "stages": [stage], "reattention_blocks": 2, **fields}


def test_deepvit() -> None:
    code = filled(Deepvit(48, 3, reattention=2, img_size=64, classes=10, channels=1))
    ours = converted(code, "deepvit", small_deepvit())
    check_scores(code, ours, 64, channels=1)
    config = ours.config
    assert (config.num_classes, config.in_chans, config.img_size) == (10, 1, 64)


def test_deepvit_with_doubled_branches_and_scaled_maps() -> None:
    code = filled(Deepvit(48, 3, 2, cnn=True, adjust=0.5, scale_maps=True, img_size=64))
    fields = {
        "stem": {"kind": "deepvit", "stride": 16},
        "branch_scale": 2.0,
        "reattention": {"scale": 0.5},
    }
    check_scores(code, converted(code, "deepvit", small_deepvit(**fields)), 64)


@pytest.mark.nightly
def test_deepvit_s_at_full_size() -> None:
    code = filled(Deepvit(396, 16, 5, cnn=True, adjust=0.5, scale_maps=True, img_size=224))
    ours = converted(code, "deepvit", None, *RUNS)
    assert ours.config.name == "deepvit_s"
    assert (ours.config.branch_scale, ours.config.norm_eps) == (2.0, 4e-6)
    check_scores(code, ours, 224)
