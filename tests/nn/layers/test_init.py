"""Initial weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from vitnas.nn.layers.init import init_linear


def test_linear_layers_are_truncated_normal_and_convolutions_untouched() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 256), nn.Conv2d(4, 4, 3), nn.Linear(4, 4, bias=False))
    convolution = model[1].weight.clone()
    nn.init.ones_(model[0].bias)
    model.apply(init_linear)
    assert model[0].weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert not model[0].bias.any()
    assert torch.equal(model[1].weight, convolution)
