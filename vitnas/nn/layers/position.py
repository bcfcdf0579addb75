"""Positions from a convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens


class ConditionalPosition(nn.Module):
    """x + depthwise 3x3 convolution of x on the grid. Its zero padding shows where the border is.

    Source: Chu et al., "Conditional Positional Encodings for Vision Transformers" (PEG). CPVT has
    it after the first block, Twins after the first block of each stage. Here it comes before the
    blocks of each stage. Class tokens do not change. Nothing depends on the image size.

    Args:
        dim: channels C.
        prefix: class tokens before the patch tokens.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters 10 C.
    MACs: ``9 * N * C``, without class tokens
    """

    def __init__(self, dim: int, prefix: int = 0) -> None:
        super().__init__()
        self.prefix = prefix
        self.conv = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)

    def forward(self, x: Tensor, grid: Grid) -> Tensor:
        patches = x[:, self.prefix :]
        out = patches + to_tokens(self.conv(to_picture(patches, grid)))
        return torch.cat([x[:, : self.prefix], out], dim=1) if self.prefix else out
