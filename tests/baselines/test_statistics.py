"""BatchNorm's running statistics after few steps."""

from __future__ import annotations

import torch
from torch import nn

from vitnas.baselines.statistics import settle_statistics


def after(norm: nn.Module, steps: int) -> float:
    """The running mean of a batch norm that has seen images of mean 100."""
    for _ in range(steps):
        norm(torch.full((8, 1, 2, 2), 100.0) + torch.randn(8, 1, 2, 2))
    found = norm.get_buffer("running_mean")
    return float(found)


def test_the_start_is_gone_after_one_step() -> None:
    assert after(nn.BatchNorm2d(1), 6) < 50
    assert abs(after(settle_statistics(nn.BatchNorm2d(1)), 1) - 100) < 1


def test_after_ten_steps_it_is_the_layer_s_own_rule() -> None:
    norm = settle_statistics(nn.BatchNorm2d(1, momentum=0.1))
    momenta = []
    for _ in range(12):
        norm(torch.randn(8, 1, 2, 2))
        momenta.append(norm.momentum)
    assert momenta[:3] == [1.0, 1 / 2, 1 / 3]
    assert momenta[9:] == [0.1, 0.1, 0.1]


def test_scoring_does_not_count_as_a_step() -> None:
    norm = settle_statistics(nn.BatchNorm2d(1)).eval()
    norm(torch.randn(8, 1, 2, 2))
    assert norm.train()(torch.randn(8, 1, 2, 2)) is not None
    assert norm.momentum == 1.0
