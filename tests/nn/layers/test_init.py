"""Initial weights."""

from __future__ import annotations

import pytest
import torch
from timm.layers import trunc_normal_
from torch import nn

from vitnas.nn.layers.init import STD, fill_with_cosines, init_linear, truncated_normal_


def test_linear_layers_are_truncated_normal_and_convolutions_untouched() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.Conv2d(4, 4, 3), nn.Linear(4, 4, bias=False))
    convolution = model[1].weight.clone()
    nn.init.ones_(model[0].bias)
    model.apply(init_linear)
    assert model[0].weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert not model[0].bias.any()
    assert torch.equal(model[1].weight, convolution)


def test_numbers_are_those_of_timm_to_the_bit() -> None:
    found = []
    for fill in (truncated_normal_, lambda weight: trunc_normal_(weight, std=STD)):
        torch.manual_seed(0)
        weight = nn.Parameter(torch.empty(300, 300))
        fill(weight)
        found.append(weight.detach())
    assert torch.equal(*found)


@pytest.mark.parametrize("channels", [1, 3])
def test_filters_of_a_cosine_transform(channels: int) -> None:
    """They are orthonormal, the mean comes first, and filters beyond them keep their weights."""
    whole = channels * 9
    weight = torch.full((whole + 2, channels, 3, 3), 5.0)
    fill_with_cosines(weight)
    flat = weight[:whole].flatten(1)
    torch.testing.assert_close(flat @ flat.T, torch.eye(whole))
    assert flat[0].tolist() == pytest.approx([whole**-0.5] * whole)
    assert flat[1].sum().item() == pytest.approx(0.0, abs=1e-6)
    assert torch.equal(weight[whole:], torch.full((2, channels, 3, 3), 5.0))


def test_few_filters_are_those_of_the_lowest_frequencies() -> None:
    weight = torch.zeros(4, 1, 3, 3)
    fill_with_cosines(weight)
    steps = [
        (kernel.diff(dim=0).abs().sum(), kernel.diff(dim=1).abs().sum()) for kernel in weight[:, 0]
    ]
    assert [(bool(down > 1e-6), bool(across > 1e-6)) for down, across in steps[:3]] == [
        (False, False),
        (False, True),
        (True, False),
    ]
