"""Between stages."""

from __future__ import annotations

import pytest
import torch

from vitnas.nn.layers.downsample import Downsample


@pytest.mark.parametrize("kind", ["conv", "metaformer", "patch"])
def test_halves_the_grid(kind: str) -> None:
    assert Downsample(8, 12, kind)(torch.randn(2, 24, 8), (4, 6)).shape == (2, 6, 12)


@pytest.mark.parametrize(("before", "after", "groups"), [(64, 128, 64), (64, 160, 32), (8, 9, 1)])
def test_sret_groups_where_they_fit(before: int, after: int, groups: int) -> None:
    assert Downsample(before, after, "conv").conv.groups == groups


def test_keeps_places() -> None:
    """What is new in a corner of the grid is new in that corner alone."""
    torch.manual_seed(0)
    for kind in ("conv", "metaformer", "patch"):
        layer, x = Downsample(4, 4, kind), torch.randn(1, 48, 4)
        moved = x.clone()
        moved[:, 47, 0] += 1.0  # last row, last column of 6 x 8
        changed = (layer(moved, (6, 8)) - layer(x, (6, 8))).abs().sum((0, 2)) > 1e-6
        assert changed.nonzero().flatten().tolist() == [11]


def test_norm_is_metaformers_alone() -> None:
    names = {name for name, _ in Downsample(8, 8, "metaformer").named_parameters()}
    assert "norm.weight" in names
    for kind in ("conv", "patch"):
        assert not any("norm" in name for name, _ in Downsample(8, 8, kind).named_parameters())
