"""Activations."""

from __future__ import annotations

import torch

from vitnas.nn.layers.activation import SquaredReLU, StarReLU


def test_star_relu_scales_and_shifts_the_square() -> None:
    act, x = StarReLU(), torch.tensor([-2.0, 0.0, 3.0])
    assert act(x).tolist() == [0.0, 0.0, 9.0]
    with torch.no_grad():
        act.scale.fill_(0.5)
        act.bias.fill_(-1.0)
    assert act(x).tolist() == [-1.0, -1.0, 3.5]


def test_squared_relu() -> None:
    assert SquaredReLU()(torch.tensor([-2.0, 3.0])).tolist() == [0.0, 9.0]
