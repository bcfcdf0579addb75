"""The formulas against the built network, counted by fvcore and by torch."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from tests.strategies import random_config
from vitnas.config.files import validate
from vitnas.config.mixers import MIXERS
from vitnas.config.model import ModelConfig
from vitnas.config.parts import Downsampling
from vitnas.cost.closed_form import Row, closed_form
from vitnas.cost.counter import measure_cost
from vitnas.nn import build_model


def torch_flops(config: ModelConfig) -> int:
    """FLOPs by torch's own counter: two a multiply-add, norms not counted."""
    with torch.device("meta"):
        model = build_model(config).eval().requires_grad_(False)
        images = torch.empty(1, config.in_chans, *config.image_hw)
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        model(images)
    return counter.get_total_flops()


def check(config: ModelConfig) -> None:
    formula, counted = closed_form(config), measure_cost(config)
    assert formula.num_params == counted.num_params
    assert formula.flops == counted.flops
    norms = sum(counted.by_operator.get(name, 0) for name in ("layer_norm", "batch_norm"))
    assert formula.norm_flops == norms
    assert torch_flops(config) == 2 * (formula.flops - formula.norm_flops)


@pytest.mark.parametrize("seed", range(20))
def test_formula_equals_fvcore_equals_torch(seed: int) -> None:
    check(random_config(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*range(20, 40), *range(1000, 1060)])
def test_formula_equals_fvcore_equals_torch_over_more(seed: int) -> None:
    check(random_config(seed))


def test_random_networks_reach_every_part_of_the_language() -> None:
    """Else the tests above would say less than they seem to."""
    configs = [random_config(seed) for seed in range(120)]
    kinds = Counter(row.kind for config in configs for row in closed_form(config).rows)
    parts = "stem pos_embed class_token downsample reattention mlp nll norm residual broad head"
    assert set(kinds) == {*MIXERS, *parts.split()}
    assert min(kinds.values()) >= 4
    assert sum(config.has_distillation_token for config in configs[:40]) >= 2
    tree = [config.model_dump() for config in configs]
    downsampling = {t["downsample"] for t in tree if len(t["stages"]) > 1}
    assert downsampling == set(get_args(Downsampling))
    for name in ("permute", "norm", "mlp_act", "global_pool", "pos_embed"):
        assert len({str(t[name]) for t in tree}) >= 2
    stems = {t["stem"]["kind"] for t in tree}
    assert stems == {"patch", "conv", "metaformer", "deepvit", "bvit", "shifted"}
    stages = [stage for config in configs for stage in config.stages if stage.facts.maps]
    for name in ("attn_dim", "attn_act", "mask_diagonal", "key_kernel", "windows", "key_stride"):
        assert len({getattr(stage, name) for stage in stages}) >= 2
    assert len({config.broad.layers for config in configs}) >= 4
    assert {t["reattention"]["norm"] for t in tree if t["reattention_blocks"]} == {
        "batch",
        "layer",
        "none",
    }


def two_pass_network() -> ModelConfig:
    stage = {
        "token_mixer": "mhsa",
        "depth": 3,
        "embed_dim": 32,
        "groups": [4, 1],
        "mlp_ratio": 2.0,
        "nll_ratio": 1.0,
    }
    stem = {"kind": "patch", "stride": 8}
    return validate(ModelConfig, {"img_size": 32, "stem": stem, "stages": [stage]})


def test_rows_say_what_the_passes_share() -> None:
    rows = {(row.stage, row.kind): row for row in closed_form(two_pass_network()).rows}
    n, c, blocks = 16, 32, 3
    linears, pairs = 4 * n * c * c, 2 * n * n * c
    params = 4 * c * c + 4 * c
    assert rows[0, "mhsa"] == Row(
        stage=0,
        kind="mhsa",
        flops=blocks * (2 * linears + pairs // 4 + pairs),
        params=blocks * params,
        passes=2,
        shared_params=blocks * params,
        reused_flops=blocks * (linears + pairs),
    )
    nll = rows[0, "nll"]
    assert nll.params == blocks * 2 * (2 * c * c + 2 * c)
    assert (nll.shared_params, nll.reused_flops) == (0, 0)


def test_totals_are_the_sums_of_the_rows() -> None:
    for seed in range(20):
        cost = closed_form(random_config(seed))
        assert cost.flops == sum(row.flops for row in cost.rows)
        assert cost.num_params == sum(row.params for row in cost.rows)
        assert 0 <= cost.shared_params <= cost.num_params


def test_one_pass_shares_nothing() -> None:
    config = validate(
        ModelConfig,
        {"img_size": 32, "stages": [{"token_mixer": "ska", "embed_dim": 32}]},
    )
    cost = closed_form(config)
    assert (cost.shared_params, cost.reused_flops) == (0, 0)
