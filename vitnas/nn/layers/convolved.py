"""Convolutions before the projections of an attention."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitnas.nn.layers.norm import TokenBatchNorm
from vitnas.nn.layers.resizing import TokenLayout
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens

EPS = 1e-5
"""Of the norm; PyTorch's, as in CvT's code."""


class Convolutions(NamedTuple):
    """How the inputs of an attention's projections are convolved.

    Attributes:
        kernel: odd side k.
        stride: of key and value; the query always has stride 1.
        prefix: tokens before the grid, which are not convolved.
        passes: through the block; each has statistics of its own.
    """

    kernel: int
    stride: int = 1
    prefix: int = 0
    passes: int = 1

    def keys(self, tokens: TokenLayout) -> TokenLayout:
        """The layout of keys and values of these tokens."""
        height, width = tokens.grid
        return TokenLayout((-(-height // self.stride), -(-width // self.stride)), tokens.prefix)


class ConvolvedTokens(nn.Module):
    """A depthwise k x k convolution without bias on the grid of the tokens, then BatchNorm.

    Tokens before the grid are passed on as they are.

    Source: CvT (Wu et al. 2021), Section 3.2 and its code (`dw_bn`).

    Args:
        dim: channels C.
        convolutions: kernel, number of tokens before the grid, and passes.
        stride: s of this convolution.

    Shape: `(B, N, C)` on grid (H, W) -> `(B, M, C)` on grid (ceil(H / s), ceil(W / s)).
    """

    def __init__(self, dim: int, convolutions: Convolutions, stride: int = 1) -> None:
        super().__init__()
        kernel, self.prefix = convolutions.kernel, convolutions.prefix
        self.conv = nn.Conv2d(dim, dim, kernel, stride, padding=kernel // 2, groups=dim, bias=False)
        self.norm = TokenBatchNorm(dim, EPS, convolutions.passes)

    def forward(self, x: Tensor, grid: Grid, pass_index: int = 0) -> Tensor:
        picture = to_picture(x[:, self.prefix :], grid) if self.prefix else to_picture(x, grid)
        out: Tensor = self.norm(to_tokens(self.conv(picture)), pass_index)
        return torch.cat([x[:, : self.prefix], out], dim=1) if self.prefix else out
