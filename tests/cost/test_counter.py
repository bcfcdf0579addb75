"""Counting a built network: nothing is left out silently, and nothing is disturbed."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from fvcore.nn import FlopCountAnalysis
from torch import Tensor, nn

from tests.strategies import random_config
from vitnas.cost.counter import measure_cost
from vitnas.cost.operators import UncountedOperatorError, count_flops, count_operators
from vitnas.nn import build_model


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        q = x.flatten(2)  # (B, C, H * W): C tokens
        return F.scaled_dot_product_attention(q[:, None], q[:, None], q[:, None, :, :5])


def test_fused_attention_is_counted() -> None:
    """fvcore alone has no handle for it and says 0."""
    shape = (6, 4, 4)
    assert FlopCountAnalysis(Attention(), (torch.zeros(1, *shape),)).total() == 0
    assert count_operators(Attention(), shape) == {"attention": 6 * 6 * (16 + 5)}


class Cumulative(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cdist(x, x).cumsum(dim=-1)


def test_an_unknown_operator_is_an_error_that_names_it() -> None:
    with pytest.raises(UncountedOperatorError, match="aten::cdist, aten::cumsum"):
        count_flops(Cumulative(), (3, 8, 8))


def test_a_custom_autograd_function_is_an_error() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return x @ x

    class Hidden(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = Double.apply(x)
            return result

    with pytest.raises(UncountedOperatorError, match="Double"):
        count_flops(Hidden(), (3, 8, 8))


def test_counts_in_eval_and_leaves_each_module_as_it_was() -> None:
    model = build_model(random_config(0)).train()
    frozen = model.stem.eval()
    config = model.config
    flops = count_flops(model, (config.in_chans, *config.image_hw))
    assert model.training
    assert not frozen.training
    assert flops == measure_cost(config).flops


def test_measuring_leaves_random_state_alone() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    for seed in range(6):
        measure_cost(random_config(seed))
    assert torch.equal(torch.get_rng_state(), before)


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
