"""What a stem costs, against the stem that is built and counted by fvcore."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from tests.nn.layers.test_stem import CASES, config_of
from vitnas.cost.operators import count_operators
from vitnas.cost.stems import StemCost, stem_cost
from vitnas.nn.layers.stem import Stem

NORMS = (nn.LayerNorm, nn.BatchNorm1d, nn.BatchNorm2d)
OTHER_CASES: list[tuple[str, int, dict[str, Any]]] = [
    ("conv", 4, {"stem": {"kind": "conv", "stride": 4, "convs": 3}}),
    ("conv", 4, {"stem": {"kind": "conv", "stride": 4, "widths": [5]}}),
    ("metaformer", 4, {"norm": "layernorm_nobias"}),
    ("metaformer", 4, {"norm": "batchnorm"}),
    ("shifted", 4, {"norm": "layernorm_nobias"}),
]


@pytest.mark.parametrize(
    ("kind", "stride", "fields"), [*((*case, {"in_chans": 2}) for case in CASES), *OTHER_CASES]
)
def test_a_stem_costs_what_the_built_one_does(
    kind: str, stride: int, fields: dict[str, Any]
) -> None:
    config = config_of(kind, stride, **fields)
    stem = Stem(config)
    counted = count_operators(stem, (config.in_chans, *config.image_hw))
    norms = counted["layer_norm"] + counted["batch_norm"]
    params = sum(parameter.numel() for parameter in stem.parameters())
    of_norms = sum(
        parameter.numel()
        for module in stem.modules()
        if isinstance(module, NORMS)
        for parameter in module.parameters()
    )
    assert stem_cost(config) == StemCost(
        sum(counted.values()) - norms, params - of_norms, norms, of_norms
    )
