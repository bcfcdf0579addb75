"""RASA's attention of LVT, and static keys in its place."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from timm.models.pvt_v2 import Attention
from torch import Tensor, nn

from vitnas.config.graft import GraftConfig
from vitnas.nn.graft.attention import Mixers, Site
from vitnas.nn.graft.reduced import Reduced, ReducedGraft
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers.cska import ConvStaticKeyAttention
from vitnas.nn.mixers.ska import StaticKeyAttention

RATES = (1, 3, 5)
"""Dilations of the convolution of the queries."""


class AtrousQuery(nn.Module):
    """sum_r SiLU(conv_r(q)): one depthwise 3x3 convolution at the dilations r = 1, 3, 5.

    Source: LVT's recursive atrous self-attention. All dilations share the weights.

    Shape: queries `(B, N, C)` -> the same.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim, 1, 3, 3))
        nn.init.kaiming_uniform_(self.weight)

    def forward(self, query: Tensor, grid: Grid) -> Tensor:
        picture, groups = to_picture(query, grid), len(self.weight)
        found = [
            F.silu(F.conv2d(picture, self.weight, None, 1, rate, rate, groups)) for rate in RATES
        ]
        return to_tokens(torch.stack(found).sum(dim=0))


class AtrousAttention(Attention):  # type: ignore[misc]
    """One pass of RASA: PVT's attention, whose queries are those of `AtrousQuery`.

    Source: LVT's recursive atrous self-attention. Keys and values are of the tokens after a
    convolution whose kernel is its stride, and a norm, as in PVT. No projection to query, key or
    value has a bias.

    Args:
        dim: channels C.
        num_heads: heads h.
        reduction: the kernel's side; 1 = no convolution.

    Attributes:
        parts: query `(B, N, C)`, key and value `(B, M, C)` pass it on their way.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    def __init__(self, dim: int, num_heads: int, reduction: int) -> None:
        super().__init__(dim, num_heads, reduction, qkv_bias=False)
        self.atrous, self.parts = AtrousQuery(dim), nn.Identity()

    def forward(self, x: Tensor, feat_size: Any) -> Tensor:
        less = x
        if self.sr is not None:
            less = self.norm(to_tokens(self.sr(to_picture(x, feat_size))))
        key, value = self.kv(less).chunk(2, dim=-1)
        parts = self.parts((self.atrous(self.q(x), feat_size), key, value))
        query, key, value = (
            torch.unflatten(part, 2, (self.num_heads, -1)).transpose(1, 2) for part in parts
        )
        if self.fused_attn:
            drop = self.attn_drop.p if self.training else 0.0
            mixed = F.scaled_dot_product_attention(query, key, value, dropout_p=drop)
        else:
            attention = (self.scale * query @ key.transpose(-2, -1)).softmax(dim=-1)
            mixed = self.attn_drop(attention) @ value
        out: Tensor = self.proj_drop(self.proj(mixed.transpose(1, 2).flatten(2)))
        return out


class Atrous(Reduced):
    """A static-key mixer whose queries are those of `AtrousQuery`.

    Attributes:
        atrous: what changes the queries; set by the graft.
        parts: query and value pass it on their way.
    """

    atrous: AtrousQuery

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.parts = nn.Identity()

    def _query_value(self, x: Tensor, grid: Grid, pass_index: int) -> tuple[Tensor, Tensor]:
        query, value = super()._query_value(x, grid, pass_index)
        query, value = self.parts((self.atrous(query, grid), value))
        return query, value


class AtrousSka(Atrous, StaticKeyAttention):
    """`ska` with a key for each of the M values."""


class AtrousCska(Atrous, ConvStaticKeyAttention):
    """`cska` with a channel for each of the M values."""


class AtrousGraft(ReducedGraft):
    """As `ReducedGraft`, in RASA: it also keeps the convolution of the queries, bit for bit."""

    mixers: ClassVar[Mixers] = {"ska": AtrousSka, "cska": AtrousCska}

    def __init__(self, site: Site, config: GraftConfig) -> None:
        super().__init__(site, config)
        self.mixer.atrous = site.attention.atrous
