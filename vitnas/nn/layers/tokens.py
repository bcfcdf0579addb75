"""Between tokens `(B, N, C)` and pictures `(B, C, H, W)`; the class token is not in the picture."""

from __future__ import annotations

import torch
from torch import Tensor

Grid = tuple[int, int]
"""(H, W): rows and columns of tokens."""


def to_windows(tokens: Tensor, grid: Grid, windows: int) -> Tensor:
    """`(B, H*W, C)` -> `(B * windows^2, n, C)`: the grid in equal windows, rows first."""
    if windows == 1:
        return tokens
    (height, width), dim = grid, tokens.shape[2]
    cells = tokens.reshape(-1, windows, height // windows, windows, width // windows, dim)
    return cells.transpose(2, 3).reshape(-1, height * width // windows**2, dim)


def from_windows(tokens: Tensor, grid: Grid, windows: int) -> Tensor:
    """`(B * windows^2, n, C)` -> `(B, H*W, C)`: the inverse of `to_windows`."""
    if windows == 1:
        return tokens
    (height, width), dim = grid, tokens.shape[2]
    cells = tokens.reshape(-1, windows, windows, height // windows, width // windows, dim)
    return cells.transpose(2, 3).reshape(-1, height * width, dim)


def to_picture(tokens: Tensor, grid: Grid) -> Tensor:
    """`(B, H*W, C)` -> `(B, C, H, W)`, rows first."""
    return torch.unflatten(tokens.transpose(1, 2), 2, grid)


def to_tokens(picture: Tensor) -> Tensor:
    """`(B, C, H, W)` -> `(B, H*W, C)`, rows first."""
    return picture.flatten(2).transpose(1, 2)
