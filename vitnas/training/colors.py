"""Brightness, contrast and saturation of a batch of images on its device.

Images are (b, C, H, W) float32 of whole numbers 0 to 255, and a strength is (b, 1, 1, 1).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor


def grey(x: Tensor) -> Tensor:
    """(b, C, H, W) -> (b, 1, H, W): the luma of three channels, the mean of any other number."""
    if x.shape[1] != 3:
        return x.mean(1, keepdim=True).round()
    return (x * _luma(x.device)).sum(1, keepdim=True).round()


@cache
def _luma(device: torch.device) -> Tensor:
    """The share of each channel, (3, 1, 1); made once, since a device is waited for."""
    return torch.tensor((0.299, 0.587, 0.114), device=device)[:, None, None]


def blend(base: Tensor, x: Tensor, share: Tensor) -> Tensor:
    """`base` for a share of 0, `x` for 1, and further away for more; 0 to 255."""
    return (base + share.to(x.device) * (x - base)).clamp(0, 255)


def contrast(x: Tensor, share: Tensor) -> Tensor:
    """Towards the mean of the grey image, or away from it."""
    return blend(grey(x).mean((2, 3), keepdim=True).round(), x, share)


def saturation(x: Tensor, share: Tensor) -> Tensor:
    """Towards the grey image, or away from it."""
    return blend(grey(x), x, share)


def brightness(x: Tensor, share: Tensor) -> Tensor:
    """Towards black, or away from it."""
    return blend(torch.zeros_like(x), x, share)
