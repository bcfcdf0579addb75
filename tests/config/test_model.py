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


@given(model_configs())
def test_the_canonical_form_is_its_own_canonical_form(config: ModelConfig) -> None:
    canonical = config.canonical()
    assert canonical.canonical() == canonical
    assert canonical.key == config.key


def test_save_and_load(tmp_path: Path) -> None:
    config = build(MHSA, {**MHSA, "groups": [4, 1]})
    save_config(config, tmp_path / "a.yaml")
    assert load_config(tmp_path / "a.yaml") == config
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_two_spellings_of_one_network_share_their_key() -> None:
    base = build(MHSA, CONV)
    same = [
        build({**MHSA, "num_heads": 2}, CONV, name="other"),
        build({**MHSA, "head_dim": 32}, {**CONV, "head_dim": 7}),
        build({**MHSA, "nll_ratio": 1.0}, {**CONV, "kernel_size": 7}),
        build({**MHSA, "expansion": 3.0}, CONV, groups="[1][1]"),
        build(MHSA, CONV, img_size=[32, 32], permute="never", broad={"pool": "layers"}),
        build(MHSA, CONV, reattention={"norm": "none"}, global_pool="avg"),
        build({**MHSA, "residual": "plain"}, CONV, stem={"kind": "conv", "stride": 2, "width": 9}),
        build(MHSA, CONV, stem={"kind": "conv", "stride": 2, "widths": []}),
        build({**MHSA, "q_proj": False}, CONV, temperature={"last": 0.3}),
        build(MHSA, CONV, temperature={"kind": "linear"}),  # of one attention block
        build(MHSA, CONV, reattention={"source": "shared", "scale": 2.0}),
        build(MHSA, CONV, head={"mlp_norm_eps": 1e-5}),
    ]
    assert {config.key for config in same} == {base.key}


def test_what_matters_changes_the_key() -> None:
    base = build(MHSA, CONV)
    other = [
        build({**MHSA, "num_heads": 4}, CONV),
        build(MHSA, {**CONV, "kernel_size": 5}),
        build(MHSA, CONV, residual="lrc"),
        build(MHSA, CONV, groups="[1,1][1]"),
        build(MHSA, CONV, reattention_blocks=1),
        build(MHSA, CONV, broad={"gamma": 0.5}),
        build(MHSA, CONV, branch_scale=2.0),
        build(MHSA, CONV, temperature={"kind": "learnable"}),
        build(MHSA, CONV, attn_drop_rate=0.1),
        build(MHSA, CONV, norm_eps=1e-5),
        build(MHSA, CONV, head={"norm_eps": 1e-5}),
    ]
    assert len({config.key for config in [base, *other]}) == len(other) + 1


def test_stages_with_one_norm_leave_it_to_the_network() -> None:
    norms = [{"norm": name} for name in ("batchnorm", "layernorm")]
    batch, layer = norms
    one = [build(MHSA, CONV, **batch), build(MHSA | batch, CONV | batch)]
    one.append(build(MHSA | batch, CONV, **batch))
    assert len({config.key for config in one}) == 1
    assert [s.norm for s in one[1].canonical().stages] == [None, None]
    two = [build(MHSA, CONV | batch), build(MHSA | layer, CONV, **batch)]
    two.append(build(MHSA | layer, CONV | batch, norm="layernorm_nobias"))
    assert len({config.key for config in two}) == 1
    keys = {one[0].key, two[0].key, build(MHSA | batch, CONV).key, build(MHSA, CONV).key}
    assert len(keys) == 4


def test_the_norm_of_stem_and_downsampling_is_the_networks() -> None:
    stages = [{**MHSA, "norm": "batchnorm"}, {**CONV, "norm": "batchnorm"}]
    free = build(*stages), build(*stages, norm="layernorm_nobias")
    assert free[0].key == free[1].key
    used = (
        build(*stages, downsample="metaformer"),
        build(*stages, downsample="metaformer", norm="layernorm_nobias"),
    )
    assert used[0].key != used[1].key


def test_what_a_whole_block_does_not_have_does_not_matter() -> None:
    mbconv = {"token_mixer": "mbconv", "embed_dim": 64}
    base = build(mbconv)
    same = [
        build({**mbconv, "mlp_ratio": 1.0, "norm": "batchnorm", "expansion": 4.0}),
        build({**mbconv, "kernel_size": 3}, norm="batchnorm", norm_eps=1e-5, mlp_act="star_relu"),
        build({**mbconv, "nll_ratio": 1.0}, mlp_bias=False, proj_drop_rate=0.1),
        build(mbconv, stem={"kind": "conv", "stride": 2, "convs": 1}),
    ]
    assert {config.key for config in same} == {base.key}
    other = [
        build({**mbconv, "expansion": 2.0}),
        build({**mbconv, "se_ratio": 0.25}),
        build({**mbconv, "conv_act": "silu"}),
        build(mbconv, stem={"kind": "conv", "stride": 2, "convs": 2}),
    ]
    assert len({config.key for config in [base, *other]}) == len(other) + 1


def test_the_fields_of_downsampling_mbconv_matter_in_no_other() -> None:
    fields = {"downsample_expansion": 2.0, "downsample_se_ratio": 0.25}
    for network in ((CONV,), (CONV, CONV)):
        assert build(*network, downsample="separable", **fields).key == (
            build(*network, downsample="separable").key
        )
    assert build(CONV, downsample="mbconv", **fields).key == build(CONV).key
    pair = [build(CONV, CONV, downsample="mbconv", **{name: fields[name]}) for name in fields]
    other = build(CONV, CONV, downsample="mbconv"), build(CONV, CONV, downsample="separable")
    assert len({config.key for config in (*pair, *other)}) == 4
    assert pair[0].downsample_channels(1) == (128, 0)
    assert pair[1].downsample_channels(1) == (256, 16)


def test_keys_of_old_runs_stay() -> None:
    """A field with a default may be added; the key of a network that does not use it stays."""
    assert build(MHSA, CONV).key == "28ace5c0f8cd"


def test_stem_widths_are_those_before_the_last() -> None:
    plain, own = ({"kind": "conv", "stride": 8, **widths} for widths in ({}, {"widths": [9, 12]}))
    assert build(MHSA, stem=plain).stem.conv_widths(64) == (32, 64, 64)
    assert build(MHSA, stem=own).stem.conv_widths(64) == (9, 12, 64)
    assert build(MHSA, stem={**plain, "widths": [32, 64]}).key == build(MHSA, stem=plain).key


def test_shared_maps_come_from_a_block_of_the_same_stage() -> None:
    deep, shared = {**MHSA, "depth": 4}, {"source": "shared"}
    config = build(deep, deep, reattention_blocks=3, reattention=shared)
    assert config.map_source == 4
    assert build(deep, deep, reattention_blocks=3).map_source is None
    assert complaint(deep, deep, reattention_blocks=4, reattention=shared).startswith(
        "reattention_blocks = 4: shared maps come from an earlier block of the stage: at most 3"
    )
    fields = {"reattention_blocks": 1, "reattention": shared}
    assert "passed once" in complaint({**deep, "groups": [1, 1]}, **fields)
    assert "a query and a key" in complaint(deep, broad={"gamma": 1.0}, **fields)


def test_groups_may_stand_in_the_network_or_in_the_stages() -> None:
    once = build(MHSA, CONV, groups="[8,2][1,1]")
    each = build({**MHSA, "groups": [8, 2]}, {**CONV, "groups": "[1,1]"})
    assert once == each
    assert once.stages[0].passes == 2


def test_reattention_goes_to_the_last_mhsa_blocks() -> None:
    config = build({**MHSA, "depth": 3}, CONV, {**MHSA, "depth": 2}, reattention_blocks=4)
    assert config.reattention_plan == (2, 0, 2)


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
            "residual = 'lcr': should be 'plain', 'lrc' or 'scale' (nearest: lrc)",
        ),
        ({"groups": "[1][1]"}, "groups = '[1][1]': 2 brackets for 1 stages (nearest: [1])"),
        ({"groups": "8,2"}, "groups = '8,2': a group schedule is written like"),
        ({"groups": [[8, 2]]}, 'groups = [[8, 2]]: must be text like "[8,2][4,1][1,1]"'),
        (
            {"groups": "[7]"},
            "stages[0].groups = [7]: 256 tokens cannot be split into 7 equal groups",
        ),
        ({"img_size": 33}, "img_size = 33: must be a multiple of 2"),
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
        ({"num_heads": 2, "head_dim": 16}, "stages[1].head_dim = 16: 2 heads of 16 are not"),
        ({"head_dim": 32, "embed_dim": 40}, "stages[1].head_dim = 32: must divide embed_dim 40"),
        ({"kernel_size": 4, "token_mixer": "dwconv"}, "stages[1].kernel_size = 4: must be odd"),
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


def test_attention_is_needed_where_something_builds_on_it() -> None:
    assert complaint(CONV, reattention_blocks=1).endswith("no stage has mhsa (nearest: 0)")
    assert "collects from mhsa and ska" in complaint(CONV, broad={"gamma": 0.5})
    cska = {"token_mixer": "cska", "embed_dim": 64}
    assert "collects from mhsa and ska" in complaint(cska, broad={"gamma": 0.5})
    assert build(CONV, broad={"gamma": 0.0}).broad_sources == ()


def test_reattention_needs_whole_maps() -> None:
    assert "g = 1 in every pass" in complaint(MHSA, groups="[4,1]", reattention_blocks=1)


def test_a_class_token_stays_in_one_stage_of_tokens() -> None:
    assert "one stage only" in complaint(MHSA, MHSA, class_token=True)
    assert "reads a grid" in complaint(CONV, class_token=True)
    config = build(MHSA, class_token=True)
    assert config.pool == "token"
    assert config.num_tokens(0) == 16 * 16 + 1


def test_stages_are_one_to_five() -> None:
    assert build(*[MHSA] * 5).grids[-1] == (1, 1)
    assert "img_size = 32" in complaint(*[MHSA] * 5, stem={"kind": "conv", "stride": 4})
    assert complaint(*[MHSA] * 6).startswith("stages")
    assert complaint().startswith("stages = []")
