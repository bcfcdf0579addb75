"""The channel MLP."""

from __future__ import annotations

import pytest
import timm.layers
import torch
import torch.nn.functional as F

from vitnas.nn.layers.activation import StarReLU
from vitnas.nn.layers.mlp import build_mlp


@pytest.mark.parametrize(
    ("dim", "ratio", "hidden"), [(64, 3.6, 230), (126, 3.0, 378), (10, 0.1, 1)]
)
def test_hidden_width_is_rounded_down(dim: int, ratio: float, hidden: int) -> None:
    assert build_mlp(dim, ratio).fc1.weight.shape == (hidden, dim)


def test_is_linear_activation_linear() -> None:
    torch.manual_seed(0)
    mlp, x = build_mlp(8, 2.0), torch.randn(2, 5, 8)
    hidden = F.gelu(x @ mlp.fc1.weight.T + mlp.fc1.bias)
    torch.testing.assert_close(mlp(x), hidden @ mlp.fc2.weight.T + mlp.fc2.bias)


def test_activation_and_biases_are_choices() -> None:
    mlp = build_mlp(8, 2.0, "star_relu", bias=False)
    assert isinstance(mlp.act, StarReLU)
    assert {name for name, _ in mlp.named_parameters()} == {
        "fc1.weight",
        "act.scale",
        "act.bias",
        "fc2.weight",
    }


@pytest.mark.parametrize("training", [False, True])
def test_is_timm_s(training: bool) -> None:
    ours, theirs = build_mlp(8, 2.0, drop=0.3), timm.layers.Mlp(8, 16, drop=0.3)
    theirs.load_state_dict(ours.state_dict())
    x, found = torch.randn(50, 8), []
    for mlp in (ours, theirs):
        torch.manual_seed(0)
        found.append(mlp.train(training)(x))
    assert torch.equal(*found)
