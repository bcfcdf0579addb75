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
    height, width = _window(grid, windows)
    cells = torch.unflatten(tokens, 1, (windows, height, windows, width)).transpose(2, 3)
    return cells.flatten(3, 4).flatten(0, 2)


def from_windows(tokens: Tensor, grid: Grid, windows: int) -> Tensor:
    """`(B * windows^2, n, C)` -> `(B, H*W, C)`: the inverse of `to_windows`."""
    if windows == 1:
        return tokens
    cells = torch.unflatten(tokens, 0, (-1, windows, windows))
    return torch.unflatten(cells, 3, _window(grid, windows)).transpose(2, 3).flatten(1, 4)


def _window(grid: Grid, windows: int) -> Grid:
    return grid[0] // windows, grid[1] // windows


def to_picture(tokens: Tensor, grid: Grid) -> Tensor:
    """`(B, H*W, C)` -> `(B, C, H, W)`, rows first."""
    return torch.unflatten(tokens.transpose(1, 2), 2, grid)


def to_tokens(picture: Tensor) -> Tensor:
    """`(B, C, H, W)` -> `(B, H*W, C)`, rows first."""
    return picture.flatten(2).transpose(1, 2)
