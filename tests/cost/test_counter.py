"""Counting a built network: nothing is left out silently, and nothing is disturbed."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from tests.strategies import random_config
from vitnas.cost.counter import measure_cost
from vitnas.nn import build_model


def test_measuring_leaves_random_state_alone() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    for seed in range(6):
        measure_cost(random_config(seed))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow
def test_prints_and_warns_nothing() -> None:
    code = (
        "from vitnas.config.files import validate\n"
        "from vitnas.config.model import ModelConfig\n"
        "from vitnas.cost.counter import measure_cost\n"
        "stages = [{'token_mixer': 'mhsa', 'embed_dim': 32}]\n"
        "print(measure_cost(validate(ModelConfig, {'img_size': 32, 'stages': stages})).flops)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().isdigit()
    assert done.stderr == ""


def test_a_shared_parameter_counts_once() -> None:
    config = random_config(0)
    model = build_model(config)
    assert measure_cost(config).num_params == sum(p.numel() for p in model.parameters())
