"""Every family builds networks for any small image."""

from __future__ import annotations

import pytest
import torch

from vitnas.baselines.baseline import Baseline
from vitnas.baselines.families import FAMILIES, build_baseline


@pytest.mark.parametrize("image_hw", [(8, 8), (28, 28), (64, 48)])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_member_gives_logits(family: str, image_hw: tuple[int, int]) -> None:
    baseline = Baseline(family=family, width=8, image_hw=image_hw, in_chans=3, num_classes=5)
    model = build_baseline(baseline).eval()
    assert model(torch.zeros(2, 3, *image_hw)).shape == (2, 5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_wider_member_is_larger(family: str) -> None:
    def size(width: int) -> int:
        shape = {"image_hw": (32, 32), "in_chans": 3, "num_classes": 5}
        model = build_baseline(Baseline(family=family, width=width, **shape))  # type: ignore[arg-type]
        return sum(parameter.numel() for parameter in model.parameters())

    assert size(8) < size(16) < size(32)
