"""A network in one line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.strategies import random_config
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line, one_lines, short_line
from vitnas.config.space import load_space
from vitnas.config.trials import RandomTrial

PYRAMID: dict[str, Any] = {
    "img_size": 32,
    "stem": {"kind": "conv", "stride": 2},
    "stages": [
        {"token_mixer": "cska", "embed_dim": 32, "mlp_ratio": 3.0},
        {"token_mixer": "mhsa", "embed_dim": 64, "depth": 2, "mlp_ratio": 3.0},
    ],
}


def _changed(stage: dict[str, Any], **fields: Any) -> ModelConfig:
    """The pyramid with other fields, and with other fields of its first stage."""
    first, last = PYRAMID["stages"]
    return ModelConfig.model_validate({**PYRAMID, **fields, "stages": [first | stage, last]})


def test_stages_stand_from_left_to_right_and_defaults_are_left_out(
    tiny_config: ModelConfig,
) -> None:
    assert one_line(tiny_config) == (
        "1x dwconv 16 kernel 3 > 1x mhsa 32 h2 [2,1] nll 1 | mlp 2 | stride 2 | drop_path_rate 0.1"
    )


def test_what_holds_for_the_whole_network_comes_last() -> None:
    stage = {"token_mixer": "mhsa", "embed_dim": 32, "depth": 3}
    tree = {"img_size": 8, "stages": [stage], "reattention_blocks": 2, "broad": {"gamma": 0.6}}
    config = ModelConfig.model_validate({**tree, "stem": {"stride": 2}})
    assert one_line(config) == "3x mhsa 32 h1 | re 2 | gamma 0.6 | stride 2"


@pytest.mark.parametrize(
    ("stage", "fields", "told"),
    [
        ({"windows": 4}, {}, "1x cska 32 h1 w4 >"),
        ({"key_kernel": 5}, {}, "32 h1 key 5 >"),
        ({"attn_act": "relu"}, {}, "32 h1 attn_act relu >"),
        ({"q_proj": False}, {}, "32 h1 no q_proj >"),
        ({"kernel_qkv": 3, "stride_kv": 2}, {}, "32 h1 qkv kernel 3 kv stride 2 >"),
        ({"mlp_ratio": 2.0}, {}, "32 h1 mlp 2 > 2x mhsa 64 h2 mlp 3 |"),
        ({"residual": "lrc"}, {}, "32 h1 residual lrc >"),
        ({}, {"class_token": True, "downsample": "conv"}, "| class token | mlp 3 |"),
        ({}, {"residual": "lrc"}, "| residual lrc |"),
        ({}, {"reattention_blocks": 1, "reattention": {"norm": "none"}}, "reattention.norm none"),
        ({}, {"temperature": {"kind": "learnable"}}, "| temperature learnable"),
        ({}, {"downsample": "patch"}, "| downsample patch"),
        ({}, {"broad": {"gamma": 0.4, "layers": "all"}}, "| broad.layers all"),
    ],
)
def test_what_makes_another_network_is_told(
    stage: dict[str, Any], fields: dict[str, Any], told: str
) -> None:
    plain, other = _changed({}), _changed(stage, **fields)
    assert told in one_line(other)
    assert told not in one_line(plain)


def test_what_does_not_matter_is_left_out() -> None:
    plain = one_line(_changed({}))
    assert plain == "1x cska 32 h1 > 2x mhsa 64 h2 | mlp 3 | stem conv | stride 2"
    assert one_line(_changed({"kernel_size": 5, "head_dim": 32}, permute="never")) == plain
    assert one_line(_changed({"residual": "plain"}, name="other")) == plain


def test_different_networks_have_different_lines() -> None:
    keys: dict[tuple[str, Any], str] = {}
    for seed in range(300):
        config = random_config(seed)
        images = (config.image_hw, config.in_chans, config.num_classes)
        assert keys.setdefault((one_line(config), images), config.key) == config.key


def test_a_list_leaves_out_what_holds_for_every_network_of_it() -> None:
    configs = [_changed({}), _changed({"mlp_ratio": 2.0}), _changed({}, class_token=True)]
    assert one_lines(configs) == [
        "1x cska 32 h1 > 2x mhsa 64 h2 | mlp 3",
        "1x cska 32 h1 mlp 2 > 2x mhsa 64 h2 mlp 3",
        "1x cska 32 h1 > 2x mhsa 64 h2 | class token | mlp 3",
    ]
    whole = {**PYRAMID, "norm": "batchnorm", "global_pool": "avg"}
    convolutions = [
        {"token_mixer": "mbconv", "embed_dim": 32, "conv_act": "silu"},
        {"token_mixer": "dwconv", "embed_dim": 32, "kernel_size": 3},
        {"token_mixer": "dwconv", "embed_dim": 32, "kernel_size": 5},
    ]
    configs = [ModelConfig.model_validate({**whole, "stages": [one]}) for one in convolutions]
    assert one_lines(configs) == ["1x mbconv 32", "1x dwconv 32 kernel 3", "1x dwconv 32 kernel 5"]
    assert "conv_act silu" in one_line(configs[0])
    assert "norm batchnorm" in one_line(configs[1])
    assert one_lines(configs[:1]) == [one_line(configs[0])]
    assert one_lines([]) == []


def test_a_list_tells_image_sizes_that_differ() -> None:
    """A space may search them, and then they are all that tells some networks apart."""
    sizes = [32, [32, 64], [64, 32]]
    configs = [_changed({}, img_size=size) for size in sizes]
    plain = "1x cska 32 h1 > 2x mhsa 64 h2"
    told = [f"{plain} | img_size {size}" for size in ("32", "[32,64]", "[64,32]")]
    assert one_lines(configs) == told
    assert one_lines([configs[1], configs[1]]) == [plain, plain]
    assert "img_size" not in one_line(configs[1])


@pytest.mark.parametrize("name", ["digits", "fashion_32", "hybrid_cifar"])
def test_different_networks_of_a_list_have_different_lines(name: str) -> None:
    space = load_space(name)
    drawn = {one.key: one for one in map(space.suggest, map(RandomTrial, range(100)))}
    assert len({*one_lines([*drawn.values()])}) == len(drawn)


def test_a_short_line_has_the_stages_and_what_they_share() -> None:
    config = _changed({}, class_token=True, norm="batchnorm")
    assert short_line(config) == "1x cska 32 h1 > 2x mhsa 64 h2 | class token | mlp 3"
    assert one_line(config) == f"{short_line(config)} | stem conv | stride 2 | norm batchnorm"
