"""Checkpoints of SKA's ViT for small images give that code's scores, through the real command."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.zoo.codes.common import filled
from tests.nn.zoo.codes.small import SmallVit
from tests.nn.zoo.weights.through import RUNS, check_scores, converted
from vitnas.config.stage import StageConfig

ROUNDED = 1e-6
"""Our temperature is their exponential, rounded to single precision."""


def stage_of(network: Any) -> StageConfig:
    (stage,) = network.config.stages
    assert isinstance(stage, StageConfig)
    return stage


@pytest.mark.parametrize(("heads", "dim_head"), [(2, 64), (5, 12), (1, 8)])
def test_static_keys_of_any_width(heads: int, dim_head: int) -> None:
    code = filled(SmallVit(24, 2, heads, dim_head, hidden=36))
    ours = converted(code, "ska_small")
    check_scores(code, ours, 16, exact=ROUNDED)
    stage = stage_of(ours)
    assert (stage.token_mixer, stage.heads, stage.attn_width) == ("ska", heads, heads * dim_head)
    assert (ours.config.img_size, stage.depth, stage.mask_diagonal) == (16, 2, True)


def test_attention_has_heads_of_64() -> None:
    code = filled(SmallVit(24, 3, 2, 64, hidden=24, static=False, img_size=12, patch=2, channels=1))
    ours = converted(code, "ska_small")
    check_scores(code, ours, 12, channels=1, exact=ROUNDED)
    config = ours.config
    assert (config.in_chans, config.stem.stride, config.img_size) == (1, 2, 12)
    assert (stage_of(ours).token_mixer, stage_of(ours).heads) == ("mhsa", 2)


def test_attention_with_other_heads_from_a_model_file() -> None:
    code = filled(SmallVit(24, 2, 3, 8, hidden=24, static=False))
    stage = {"token_mixer": "mhsa", "depth": 2, "embed_dim": 24, "num_heads": 3, "mlp_ratio": 1.0}
    model = {"stem": {"stride": 4}, "class_token": True, "qkv_bias": False, "stages": [stage]}
    check_scores(code, converted(code, "ska_small", model), 16, exact=ROUNDED)


@pytest.mark.nightly
def test_at_full_size() -> None:
    code = filled(SmallVit(512, 6, 10, 64, hidden=512, img_size=32, classes=10))
    ours = converted(code, "ska_small", None, *RUNS)
    check_scores(code, ours, 32, exact=ROUNDED)
    assert sum(parameter.numel() for parameter in ours.parameters()) == 9_478_896
