"""How a reference network comes down from an image to its last grid."""

from __future__ import annotations

import pytest
import torch

from tests.baselines.test_families import make
from vitnas.baselines.families import build_baseline
from vitnas.baselines.stages import Grid


@pytest.mark.parametrize(
    ("side", "stride", "stages", "last"),
    [(8, 1, 2, 4), (16, 2, 2, 4), (28, 2, 2, 7), (32, 2, 3, 4), (64, 4, 3, 4), (224, 4, 4, 7)],
)
def test_the_last_grid_is_small_and_not_one(side: int, stride: int, stages: int, last: int) -> None:
    grid = Grid(side)
    assert (grid.stem_stride, grid.num_stages) == (stride, stages)
    assert -(-side // stride) // 2**grid.halvings == last


@pytest.mark.parametrize("side", [8, 32, 64])
@pytest.mark.parametrize("family", ["resnet", "mobilenet", "convnext"])
def test_what_is_built_has_this_grid(family: str, side: int) -> None:
    layers = build_baseline(make(family, 4, (side, side)))
    features = torch.zeros(2, 3, side, side)
    for layer in list(layers.children())[:-4]:
        features = layer(features)
    assert features.shape[-2:] == (4, 4)
    assert features.shape[1] == Grid(side).widths(4)[-1]
