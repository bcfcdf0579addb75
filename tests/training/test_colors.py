"""Brightness, contrast and saturation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from vitnas.training.colors import brightness, contrast, grey, saturation

IMAGES = torch.randint(0, 256, (2, 3, 4, 5), generator=torch.Generator().manual_seed(0)).float()
CHANGES = (brightness, contrast, saturation)


@pytest.mark.parametrize("change", CHANGES)
def test_a_strength_of_one_changes_nothing(change: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert torch.equal(change(IMAGES, torch.ones(2, 1, 1, 1)), IMAGES)


def test_without_strength_an_image_is_black_or_one_grey_or_grey() -> None:
    none = torch.zeros(2, 1, 1, 1)
    assert not brightness(IMAGES, none).any()
    assert all(image.unique().numel() == 1 for image in contrast(IMAGES, none))
    assert torch.equal(saturation(IMAGES, none), grey(IMAGES).expand_as(IMAGES))
