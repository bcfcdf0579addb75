"""Recursive stacks of 100 and of 1,000 layers, 13 to 15 M parameters (SReT's claim)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig, load_config
from vitnas.cost.closed_form import closed_form
from vitnas.cost.counter import measure_cost
from vitnas.nn.model import build_model
from vitnas.nn.zoo import zoo_config

DEEP = {"sret_108": 108, "sret_1000": 1000}
FILES = Path(__file__).resolve().parents[3] / "benchmarks"  # a thousand passes are not in the zoo


def deep(name: str, **changes: Any) -> ModelConfig:
    if name != "sret_1000":
        return zoo_config(name, **changes)
    return validate(ModelConfig, {**load_config(FILES / f"{name}.yaml").model_dump(), **changes})


@pytest.mark.parametrize("name", DEEP)
def test_has_that_many_passes_and_13_to_15_million_parameters(name: str) -> None:
    config = deep(name)
    assert sum(stage.depth * stage.passes for stage in config.stages) == DEEP[name]
    assert 13e6 < closed_form(config).num_params < 15e6


def test_deit_of_108_blocks_has_three_times_as_many() -> None:
    config = zoo_config("deit_108")
    assert config.stages[0].depth == 108
    assert closed_form(config).num_params == pytest.approx(48.42e6, abs=0.01e6)


def test_table_14_lies_on_a_line_but_for_24_blocks() -> None:
    """SReT prints 5.7, 11.55, 16.39 and 21.73 M; 24 blocks have 11.06."""
    params = []
    for depth in (12, 24, 36, 48):
        stage = {"token_mixer": "mhsa", "depth": depth, "embed_dim": 192, "num_heads": 3}
        params.append(closed_form(zoo_config("bvit_5m", broad={}, stages=[stage])).num_params / 1e6)
    assert params == pytest.approx([5.72, 11.06, 16.39, 21.73], abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["sret_108", "deit_108", pytest.param("sret_1000", marks=pytest.mark.nightly)]
)
def test_trains_a_step(name: str) -> None:
    torch.manual_seed(0)
    model = build_model(deep(name, img_size=32, num_classes=10))
    assert sum(p.numel() for p in model.parameters()) == closed_form(model.config).num_params
    images, labels = torch.randn(2, 3, 32, 32), torch.tensor([3, 7])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    losses = []
    for _ in range(2):
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        for parameter_name, parameter in model.named_parameters():
            assert parameter.grad is not None, parameter_name
            assert parameter.grad.isfinite().all(), parameter_name
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[1] < losses[0]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["sret_108", "sret_1000", "deit_108"])
def test_closed_form_is_what_is_counted(name: str) -> None:
    config = deep(name, img_size=32)
    counted, formula = measure_cost(config), closed_form(config)
    assert (counted.flops, counted.num_params) == (formula.flops, formula.num_params)
