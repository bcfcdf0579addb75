"""Parameters over positions, for images of another size.

Positions are points of the picture and do not depend on the grid. So a table, a static key or a
weight over positions is resized like a picture. Weights of a sum over positions without a softmax
are scaled by the old number of positions divided by the new one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.nn.layers.tokens import Grid


class TokenLayout(NamedTuple):
    """Tokens of a stage: `prefix` class tokens, then a grid (H, W)."""

    grid: Grid
    prefix: int

    @property
    def tokens(self) -> int:
        return self.prefix + self.grid[0] * self.grid[1]


class Change(NamedTuple):
    """`owner.name` becomes `value`. A parameter stays a parameter, a buffer stays a buffer."""

    owner: nn.Module
    name: str
    value: Any


@torch.no_grad()
def resize_tokens(table: Tensor, axis: int, old: TokenLayout, new: TokenLayout) -> Tensor:
    """A tensor over the tokens of `old` along `axis`, resized for `new`: bicubic, antialiased.

    Entries of class tokens are kept. This is timm's `resample_abs_pos_embed` for any axis.
    """
    if old == new:
        return table.detach().clone()
    rows = table.detach().movedim(axis, -1)
    prefix, patches = rows[..., : old.prefix], rows[..., old.prefix :]
    picture = patches.reshape(1, -1, *old.grid).float()
    picture = F.interpolate(picture, new.grid, mode="bicubic", antialias=True)
    fitted = picture.reshape(*rows.shape[:-1], -1).to(table.dtype)
    return torch.cat([prefix, fitted], dim=-1).movedim(-1, axis).contiguous()
