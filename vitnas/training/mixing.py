"""Mixing images of a batch with each other and with noise: mixup, CutMix, random erasing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vitnas.config.recipe import Recipe


class Mixing:
    """timm's mixup, CutMix and random erasing on a batch that is normalised and on its device.

    Mixing takes images in pairs, so a batch of odd size loses one image.

    Args:
        recipe: `mixup`, `cutmix`, `random_erasing` and `label_smoothing` count.
        num_classes: length of the mixed targets.
        device: where the batches are.

    Randomness: the global generators of Python, NumPy and torch.
    """

    def __init__(self, recipe: Recipe, num_classes: int, device: torch.device) -> None:
        self._mixup: Any = None
        self._erase: Any = None
        if recipe.mixup or recipe.cutmix:
            from timm.data import Mixup

            self._mixup = Mixup(
                recipe.mixup,
                recipe.cutmix,
                label_smoothing=recipe.label_smoothing,
                num_classes=num_classes,
            )
        if recipe.random_erasing:
            from timm.data.random_erasing import RandomErasing

            self._erase = RandomErasing(recipe.random_erasing, mode="pixel", device=str(device))

    def __call__(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Images `(B, C, H, W)` and classes `(B,)` -> images and classes, or with mixing images and
        probabilities `(B, classes)` that are smoothed already."""
        if self._erase is not None:
            x = self._erase(x)
        if self._mixup is not None:
            even = len(x) // 2 * 2
            x, y = self._mixup(x[:even], y[:even])
        return x, y
