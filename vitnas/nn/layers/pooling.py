"""Pooling that halves the grid."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.parts import Pooling


class MaxBlurPool(nn.Module):
    """The largest of the 2x2 places around each corner, then a low-pass filter of stride 2.

    Max pooling of stride 2 leaves out three of four such maxima, so what it gives changes much when
    the image moves by a pixel. Here a filter comes first: [1, 2, 1] / 4 along both sides, fixed.

    timm's `BlurPool2d` has the same filter, but a training does not import timm.

    Source: Zhang, "Making Convolutional Networks Shift-Invariant Again", Section 3.2 (MaxBlurPool).

    Args:
        dim: channels C.

    Shape: `(B, C, H, W)` -> `(B, C, H / 2, W / 2)`; H and W are even.
    """

    filter: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim
        place = torch.empty(0).device  # the default device, maybe "meta"
        self.register_buffer("filter", self._filter().to(place), persistent=False)

    def _filter(self) -> Tensor:
        row = torch.tensor([0.25, 0.5, 0.25], device="cpu")
        return (row[:, None] * row).repeat(self.dim, 1, 1, 1)

    def init_non_persistent_buffers(self) -> None:
        """timm's hook: fill the buffer again after `to_empty` on a network built on "meta"."""
        self.filter = self._filter().to(self.filter.device)

    def forward(self, x: Tensor) -> Tensor:
        largest = F.max_pool2d(x, 2, stride=1, padding=1)  # (H + 1, W + 1): each corner
        return F.conv2d(largest, self.filter, stride=2, groups=self.dim)


def build_pooling(dim: int, kind: Pooling) -> nn.Module:
    """`(B, C, H, W)` -> `(B, C, H / 2, W / 2)`, as `pooling` in a model file says."""
    return MaxBlurPool(dim) if kind == "max_blur" else nn.MaxPool2d(2)
