"""Between tokens `(B, N, C)` and pictures `(B, C, H, W)`; the class token is not in the picture."""

from __future__ import annotations

import torch
from torch import Tensor

Grid = tuple[int, int]
"""(H, W): rows and columns of tokens."""


def to_picture(tokens: Tensor, grid: Grid) -> Tensor:
    """`(B, H*W, C)` -> `(B, C, H, W)`, rows first."""
    return torch.unflatten(tokens.transpose(1, 2), 2, grid)


def to_tokens(picture: Tensor) -> Tensor:
    """`(B, C, H, W)` -> `(B, H*W, C)`, rows first."""
    return picture.flatten(2).transpose(1, 2)
