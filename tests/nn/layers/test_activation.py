"""Activations."""

from __future__ import annotations

import torch

from vitnas.nn.layers.activation import CReLU, SquaredReLU, StarReLU


def test_star_relu_scales_and_shifts_the_square() -> None:
    act, x = StarReLU(), torch.tensor([-2.0, 0.0, 3.0])
    assert act(x).tolist() == [0.0, 0.0, 9.0]
    with torch.no_grad():
        act.scale.fill_(0.5)
        act.bias.fill_(-1.0)
    assert act(x).tolist() == [-1.0, -1.0, 3.5]


def test_squared_relu() -> None:
    assert SquaredReLU()(torch.tensor([-2.0, 3.0])).tolist() == [0.0, 9.0]


def test_crelu_keeps_both_signs() -> None:
    """Without a third negative where three channels are wanted of two filters."""
    x = torch.tensor([-2.0, 3.0]).view(1, 2, 1, 1)
    assert CReLU(4)(x).flatten().tolist() == [0.0, 3.0, 2.0, 0.0]
    assert CReLU(3)(x).flatten().tolist() == [0.0, 3.0, 2.0]
