"""What a norm costs, against the norm that is built and counted by fvcore."""

from __future__ import annotations

import pytest
from torch import Tensor, nn

from vitnas.config.parts import Norm
from vitnas.cost.norms import norm_cost
from vitnas.cost.operators import count_flops
from vitnas.nn.layers.norm import build_norm


class OfPixels(nn.Module):
    """Takes an image's pixels as tokens."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, images: Tensor) -> Tensor:
        out: Tensor = self.norm(images.flatten(2).transpose(1, 2))
        return out


@pytest.mark.parametrize("kind", ["layernorm", "layernorm_nobias", "batchnorm"])
def test_a_norm_costs_what_the_built_one_does(kind: Norm) -> None:
    norm = build_norm(6, kind)
    params = sum(parameter.numel() for parameter in norm.parameters())
    assert norm_cost(kind, 6, 20) == (count_flops(OfPixels(norm), (6, 4, 5)), params)
