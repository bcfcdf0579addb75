"""Counting operators: attention has a rule, and an operator without one is an error."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from fvcore.nn import FlopCountAnalysis
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tests.strategies import random_config
from vitnas.cost.counter import measure_cost
from vitnas.cost.operators import UncountedOperatorError, count_flops, count_operators
from vitnas.nn import build_model
from vitnas.nn.graft import build_network


class Attention(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        q = x.flatten(2)  # (B, C, H * W): C tokens
        return F.scaled_dot_product_attention(q[:, None], q[:, None], q[:, None, :, :5])


def test_fused_attention_is_counted() -> None:
    """fvcore alone has no handle for it and says 0."""
    shape = (6, 4, 4)
    assert FlopCountAnalysis(Attention(), (torch.zeros(1, *shape),)).total() == 0
    assert count_operators(Attention(), shape) == {"attention": 6 * 6 * (16 + 5)}


OF_TIMM = {
    "test_efficientnet": 64,  # silu in place
    "tf_efficientnetv2_b0": 64,  # ceil
    "convnextv2_atto": 64,  # addcmul and norms of vectors, in its global response
    "edgenext_xx_small": 64,  # cumsum and clamp_min
    "levit_128s": 64,  # reshape_as
}
"""Networks with operators that our own do not have, and a side of their images."""


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_TIMM)
def test_what_is_free_hides_nothing_of_timms_networks(name: str) -> None:
    """Convolutions, linear layers and products are those that torch counts."""
    side = OF_TIMM[name]
    model = build_network(name, img_size=side).eval().requires_grad_(False)
    counted = count_operators(model, (3, side, side))
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(1, 3, side, side))
    norms = ("layer_norm", "batch_norm", "adaptive_avg_pool2d")
    ours = sum(flops for operator, flops in counted.items() if operator not in norms)
    assert ours == counter.get_total_flops() // 2


class Cumulative(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cdist(x, x).cumprod(dim=-1)


def test_an_unknown_operator_is_an_error_that_names_it() -> None:
    with pytest.raises(UncountedOperatorError, match="aten::cdist, aten::cumprod"):
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
