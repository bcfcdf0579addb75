"""Two spellings of one network have one canonical form and one key; keys of old runs stay."""

from __future__ import annotations

from hypothesis import given

from tests.config.test_model import CONV, MHSA, build
from tests.strategies import model_configs
from vitnas.config.model import ModelConfig


@given(model_configs())
def test_the_canonical_form_is_its_own_canonical_form(config: ModelConfig) -> None:
    canonical = config.canonical()
    assert canonical.canonical() == canonical
    assert canonical.key == config.key


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
        build({**MHSA, "q_proj": False}, {**CONV, "key_kernel": 5}, temperature={"last": 0.3}),
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


def test_spellings_that_collect_the_same_layers_are_one_network() -> None:
    def key(layers: str | None) -> str:
        return build({**MHSA, "depth": 4}, MHSA, broad={"gamma": 0.5, "layers": layers}).key

    assert len({key("all"), key("last:5"), key("last:9"), key("every:1")}) == 1
    assert key(None) == key("stages")
    assert key("last:1") == key("every:5")
    assert len({key(text) for text in (None, "all", "last:1", "last:3", "every:2")}) == 5
    assert build(MHSA, broad={"layers": "all"}).key == build(MHSA).key


def test_keys_of_old_runs_stay() -> None:
    """A field with a default may be added; the key of a network that does not use it stays."""
    assert build(MHSA, CONV).key == "28ace5c0f8cd"
