"""What follows from the fields of a network: grids, tokens, and which blocks do what."""

from __future__ import annotations

from typing import Any

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig

MHSA: dict[str, Any] = {"token_mixer": "mhsa", "embed_dim": 64}


CONV: dict[str, Any] = {"token_mixer": "dwconv", "embed_dim": 64}


def build(*stages: dict[str, Any], **fields: Any) -> ModelConfig:
    tree = {"img_size": 32, "stem": {"kind": "conv", "stride": 2}, "stages": list(stages)}
    return validate(ModelConfig, tree | fields)


def test_every_stage_halves_the_grid() -> None:
    config = build(CONV, CONV, CONV, img_size=[32, 64])
    assert config.image_hw == (32, 64)
    assert config.grids == ((16, 32), (8, 16), (4, 8))
    assert [config.num_tokens(index) for index in range(3)] == [512, 128, 32]


def test_a_class_token_is_a_token_and_is_pooled() -> None:
    config = build(MHSA, class_token=True)
    assert (config.num_prefix_tokens, config.num_tokens(0)) == (1, 257)
    assert config.pool == "token"
    assert build(MHSA, class_token=True, global_pool="avg").pool == "avg"
    assert build(MHSA).pool == "avg"


def test_a_stage_says_its_own_residual_and_norm_or_leaves_them_to_the_network() -> None:
    own = CONV | {"residual": "scale", "norm": "batchnorm"}
    config = build(own, CONV, residual="lrc", norm="layernorm_nobias")
    assert [config.residual_of(stage) for stage in config.stages] == ["scale", "lrc"]
    assert [config.norm_of(stage) for stage in config.stages] == ["batchnorm", "layernorm_nobias"]


def test_a_shared_map_comes_from_the_block_before_the_last_k() -> None:
    shared = {"reattention": {"source": "shared"}, "reattention_blocks": 2}
    config = build(CONV | {"depth": 3}, MHSA | {"depth": 4}, **shared)
    assert config.reattention_plan == (0, 2)
    assert config.map_source == 4
    assert build(MHSA | {"depth": 4}, reattention_blocks=2).map_source is None
    assert build(MHSA | {"depth": 4}).map_source is None


def test_attention_spans_from_its_first_to_its_last_block() -> None:
    config = build(CONV | {"depth": 2}, MHSA | {"depth": 3}, CONV)
    assert config.attention_span == (2, 4)
    assert build(CONV).attention_span == (0, 0)


def test_broad_attention_collects_from_stages_with_a_key() -> None:
    stages = (CONV, MHSA, MHSA | {"token_mixer": "cska"}, MHSA | {"token_mixer": "ska"})
    assert build(*stages, broad={"gamma": 0.4}).broad_sources == ((1, 0), (3, 0))
    assert build(*stages).broad_sources == ()


def test_only_expanding_downsampling_is_wider_inside() -> None:
    assert build(CONV, CONV).downsample_channels(1) == (64, 0)
    expanding = {"downsample": "mbconv", "downsample_expansion": 3.0, "downsample_se_ratio": 0.25}
    assert build(CONV, CONV, **expanding).downsample_channels(1) == (192, 16)


def test_reattention_goes_to_the_last_mhsa_blocks() -> None:
    config = build({**MHSA, "depth": 3}, CONV, {**MHSA, "depth": 2}, reattention_blocks=4)
    assert config.reattention_plan == (2, 0, 2)
