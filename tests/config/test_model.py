"""What a model file may say, what it means, and the one line that a wrong one gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.strategies import model_configs
from vitnas.config.files import dump_yaml, parse_yaml, validate
from vitnas.config.model import ModelConfig, load_config, save_config
from vitnas.errors import ConfigError

MHSA: dict[str, Any] = {"token_mixer": "mhsa", "embed_dim": 64}
CONV: dict[str, Any] = {"token_mixer": "dwconv", "embed_dim": 64}


def build(*stages: dict[str, Any], **fields: Any) -> ModelConfig:
    tree = {"img_size": 32, "stem": {"kind": "conv", "stride": 2}, "stages": list(stages)}
    return validate(ModelConfig, tree | fields, file="model.yaml")


def complaint(*stages: dict[str, Any], **fields: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        build(*stages, **fields)
    assert caught.value.exit_code == 2
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith("model.yaml: ")
    return line.removeprefix("model.yaml: ")


@given(model_configs())
def test_a_written_file_reads_back_as_the_same_network(config: ModelConfig) -> None:
    again = validate(ModelConfig, parse_yaml(dump_yaml(config.to_tree())))
    assert again == config
    assert again.key == config.key


def test_save_and_load(tmp_path: Path) -> None:
    config = build(MHSA, {**MHSA, "groups": [4, 1]})
    save_config(config, tmp_path / "a.yaml")
    assert load_config(tmp_path / "a.yaml") == config
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_groups_may_stand_in_the_network_or_in_the_stages() -> None:
    once = build(MHSA, CONV, groups="[8,2][1,1]")
    each = build({**MHSA, "groups": [8, 2]}, {**CONV, "groups": "[1,1]"})
    assert once == each
    assert once.stages[0].passes == 2
    assert once == build({**MHSA, "passes": 2, "groups": [8, 2, 4]}, {**CONV, "passes": 2})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"img_sise": 32}, "img_sise = 32: unknown key (nearest: img_size)"),
        ({"group": "[1]"}, "group = '[1]': unknown key (nearest: groups)"),
        ({"num_classes": "many"}, "num_classes = 'many': should be a whole number"),
        ({"num_classes": True}, "num_classes = true: should be a whole number"),
        ({"drop_path_rate": "5e-2"}, "drop_path_rate = '5e-2': YAML reads this as text"),
        ({"drop_path_rate": 1.5}, "drop_path_rate = 1.5: should be less than 1"),
        (
            {"residual": "lcr"},
            "residual = 'lcr': should be 'plain', 'lrc', 'lrc_branch', 'lrc_identity' or 'scale' "
            "(nearest: lrc)",
        ),
        ({"groups": "[1][1]"}, "groups = '[1][1]': 2 brackets for 1 stages (nearest: [1])"),
        ({"groups": "8,2"}, "groups = '8,2': a group schedule is written like"),
        ({"groups": [[8, 2]]}, 'groups = [[8, 2]]: must be text like "[8,2][4,1][1,1]"'),
        (
            {"groups": "[7]"},
            "stages[0].groups = [7]: 256 tokens cannot be split into 7 equal groups",
        ),
        (
            {"img_size": 33},
            "img_size = 33: must be a multiple of 2: a stem of stride 2 (nearest: 32)",
        ),
        ({"img_size": [32]}, "img_size"),
        ({"img_size": [32, "x"]}, "img_size[1] = 'x': should be a whole number"),
        (
            {"stem": {"kind": "conv", "stride": 3}},
            "stem.stride = 3: must be a power of two (nearest: 2)",
        ),
        (
            {"stem": {"kind": "conv", "stride": 8, "widths": [4]}},
            "stem.widths = [4]: must name 2 widths: a conv stem of stride 8 has 3 convolutions",
        ),
        (
            {"stem": {"kind": "conv", "stride": 8, "convs": 2}},
            "stem.convs = 2: a conv stem of stride 8 has 3 convolutions or more (nearest: 3)",
        ),
        (
            {"stem": {"kind": "conv", "stride": 2, "convs": 3, "widths": [4]}},
            "stem.widths = [4]: must name 2 widths: a conv stem of stride 2 and convs 3 has 3",
        ),
        (
            {"stages": [{"token_mixer": "mbconv", "embed_dim": 8, "groups": [1, 1]}]},
            "stages[0].groups = [1, 1]: mbconv is passed once: its batch norms keep the statistics "
            "of one pass (nearest: [1])",
        ),
        ({"branch_scale": 0.0}, "branch_scale = 0.0: should be greater than 0"),
        ({"attn_drop_rate": 1.0}, "attn_drop_rate = 1.0: should be less than 1"),
        (
            {"temperature": {"kind": "lineer"}},
            "temperature.kind = 'lineer': should be 'none', 'linear' or 'learnable'",
        ),
        ({"reattention_blocks": 2}, "reattention_blocks = 2: only the last 1 mhsa blocks"),
        ({"global_pool": "token"}, "global_pool = 'token': needs class_token: true (nearest: avg)"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(fields: dict[str, Any], expected: str) -> None:
    assert complaint(MHSA, **fields).startswith(expected)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        ({"token_mixer": "msha"}, "stages[1].token_mixer = 'msha'"),
        ({"num_heads": 5}, "stages[1].num_heads = 5: must divide embed_dim 64 (nearest: 4)"),
        ({"head_dim": 48}, "stages[1].head_dim = 48: must divide embed_dim 64 (nearest: 32)"),
        (
            {"head_dim": 64, "attn_dim": 600},
            "stages[1].head_dim = 64: must divide attn_dim 600 (nearest: 60)",
        ),
        (
            {"head_dim": 64, "num_heads": 10},
            "stages[1].num_heads = 10: must divide embed_dim 64; 10 heads of 64 are attn_dim 640",
        ),
        (
            {"head_dim": 64, "num_heads": 2},
            "stages[1].head_dim = 64: 2 heads of 64 are not embed_dim 64; give one of both, or "
            "attn_dim 128",
        ),
        ({"num_heads": 2, "head_dim": 16}, "stages[1].head_dim = 16: 2 heads of 16 are not"),
        ({"head_dim": 32, "embed_dim": 40}, "stages[1].head_dim = 32: must divide embed_dim 40"),
        ({"kernel_size": 4, "token_mixer": "dwconv"}, "stages[1].kernel_size = 4: must be odd"),
        (
            {"windows": 3, "token_mixer": "ska"},
            "stages[1].windows = 3: must divide both sides of the",
        ),
        ({"kernel_qkv": 2}, "stages[1].kernel_qkv = 2: must be odd"),
        (
            {"kernel_qkv": 3, "stride_kv": 2, "groups": [4, 1]},
            "stages[1].stride_kv = 2: keys of stride 2 cannot be sliced into groups (nearest: 1)",
        ),
        ({"key_kernel": 2, "token_mixer": "cska"}, "stages[1].key_kernel = 2: must be odd"),
        ({"depth": 0}, "stages[1].depth = 0: should be greater than or equal to 1"),
        ({"groups": [3, 1]}, "stages[1].groups = [3, 1]: 64 tokens cannot be split into 3"),
        ({"groups": []}, "stages[1].groups = []"),
        (
            {"token_mixer": "ska", "groups": [2, 1]},
            "stages[1].groups = [2, 1]: ska is bound to token",
        ),
        ({"token_mixer": "cska", "groups": [2]}, "stages[1].groups = [2]: cska is bound to token"),
    ],
)
def test_what_is_wrong_in_a_stage_has_its_address(stage: dict[str, Any], expected: str) -> None:
    assert complaint(MHSA, {**MHSA, **stage}).startswith(expected)
