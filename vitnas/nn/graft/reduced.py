"""Static keys in PVT's attention, whose keys and values are fewer than its queries."""

from __future__ import annotations

from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.graft import GraftConfig
from vitnas.nn.graft.attention import Mixers, Site, StaticKeyGraft
from vitnas.nn.layers.resizing import TokenLayout
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers.cska import ConvStaticKeyAttention
from vitnas.nn.mixers.ska import StaticKeyAttention, StaticKeyMixer


class Reduction(nn.Module):
    """What PVT does to the tokens before it projects them to keys and values.

    A convolution whose kernel is its stride, and a norm (PVT v2, Section 3.1); or, in the linear
    form, a mean over 7x7 places, a 1x1 convolution, a norm and GELU (its Section 3.3). The modules
    are those of timm's attention.

    Shape: `(B, N, C)` -> `(B, M, C)`.
    """

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.pool, self.sr = attention.pool, attention.sr
        self.norm, self.act = attention.norm, attention.act

    def after(self, grid: Grid) -> Grid:
        """The grid of M tokens."""
        if self.pool is not None:
            side: int = self.pool.output_size
            return side, side
        if self.sr is None:
            return grid
        stride = self.sr.stride[0]
        return grid[0] // stride, grid[1] // stride

    def forward(self, x: Tensor, grid: Grid) -> Tensor:
        if self.sr is None:
            return x
        picture = to_picture(x, grid)
        x = self.norm(to_tokens(self.sr(picture if self.pool is None else self.pool(picture))))
        return x if self.act is None else self.act(x)


class Reduced(StaticKeyMixer):
    """A static-key mixer of N queries, and M values of reduced tokens.

    Attributes:
        reduction: what reduces them; set by the graft.
    """

    reduction: Reduction

    def _query_value(self, x: Tensor, grid: Grid, pass_index: int) -> tuple[Tensor, Tensor]:
        halves = slice(None, self.width), slice(self.width, None)
        bias = self.qv.bias
        query, value = (
            F.linear(part, self.qv.weight[half], None if bias is None else bias[half])
            for part, half in zip((x, self.reduction(x, grid)), halves, strict=True)
        )
        return query, value

    def _keys_of(self, tokens: TokenLayout) -> TokenLayout:
        return TokenLayout(self.reduction.after(tokens.grid), 0)


class ReducedSka(Reduced, StaticKeyAttention):
    """`ska` with a key for each of the M values."""


class ReducedCska(Reduced, ConvStaticKeyAttention):
    """`cska` with a channel for each of the M values."""


class ReducedGraft(StaticKeyGraft):
    """As `StaticKeyGraft`, in PVT: it also keeps what reduces the tokens, bit for bit.

    The static key is as long as the values are many, as in SKA's code for CvT. Where they are fewer
    than the queries, `mask_diagonal` is without effect, as in `AttentionMixer`.
    """

    mixers: ClassVar[Mixers] = {"ska": ReducedSka, "cska": ReducedCska}

    def __init__(self, site: Site, config: GraftConfig) -> None:
        super().__init__(site, config)
        self.mixer.reduction = Reduction(site.attention)
        self.mixer.mask_diagonal &= self.num_keys(site) == site.num_tokens

    def num_keys(self, site: Site) -> int:
        height, width = Reduction(site.attention).after(site.grid)
        return height * width

    def forward(self, x: Tensor, feat_size: Any = None) -> Tensor:  # type: ignore[override]
        """`feat_size`: the grid, which timm passes and which is the static key's."""
        self.check(x)
        out: Tensor = self.mixer(x, self.grid)
        return out
