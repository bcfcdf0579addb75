"""Static-key attention."""

from __future__ import annotations

from typing import Any, Literal

import torch
from timm.layers import trunc_normal_
from torch import Tensor, nn

from vitnas.nn.layers.init import STD
from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.attention import AttentionMixer, options_at
from vitnas.nn.mixers.base import Place, Tap

KeyInit = Literal["trunc_normal", "randn"]


def init_key(key: Tensor, init: KeyInit) -> None:
    """Fill a static key: truncated normal 0.02, or the paper's randn (it saturates the softmax)."""
    if init == "trunc_normal":
        trunc_normal_(key, std=STD)
    else:
        nn.init.normal_(key)


class StaticKeyMixer(AttentionMixer):
    """The common part of `ska` and `cska`: there is no key projection.

    Args:
        dim: channels C.
        num_heads: heads h; head_dim d = A / h, where A are the channels of Q, C by default.
        qkv_bias: whether query and value have a bias.
        q_proj: whether the query is a projection of the tokens; else the tokens are the query.
        **attention: as for `AttentionMixer`.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        qkv_bias: bool = True,
        q_proj: bool = True,
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        self.q_proj = q_proj
        self.qv = nn.Linear(dim, (2 if q_proj else 1) * self.width, bias=qkv_bias)

    def _query_value(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """`(B, N, C)` -> query and value `(B, N, A)`."""
        projected = self.qv(x)
        if not self.q_proj:
            return x, projected
        query, value = projected.chunk(2, dim=-1)
        return query, value


class StaticKeyAttention(StaticKeyMixer):
    """softmax(Q K^T / sqrt(d)) V with a learned key K of shape (h, N, d), the same for all images.

    Q and V are the queries and values `(B, h, N, d)`, projected from the tokens.

    Source: Static Key Attention, Section 4.1, Algorithm 1 and Table 6. The query is a projection,
    unless `q_proj` is False. Section 4.1 prints the axes of the key's shape in the wrong order. Two
    defaults differ from the paper: the logits are divided by sqrt(d), and the key starts as
    truncated normal 0.02.

    The key belongs to the positions of one resolution. So tokens cannot be sliced into groups, and
    their number is fixed.

    Args:
        dim: channels C.
        num_heads: heads h; d = A / h, where A are the channels of Q, C by default.
        num_tokens: N, class token included.
        key_init: `trunc_normal` or `randn`.
        **attention: as for `StaticKeyMixer`.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters (2 + q) C A + N A and biases.
    MACs: ``N * A * ((2 + q) * C + 2 * N)``; q is 1 where the query is projected, else 0.
    Randomness: dropout, in training only.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_tokens: int,
        *,
        key_init: KeyInit = "trunc_normal",
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        self.static_key = nn.Parameter(torch.empty(num_heads, num_tokens, self.head_dim))
        init_key(self.static_key, key_init)

    @classmethod
    def at(cls, place: Place) -> StaticKeyAttention:
        stage = place.stage_config
        return cls(
            stage.embed_dim,
            stage.heads,
            place.num_tokens,
            qkv_bias=place.config.qkv_bias,
            q_proj=stage.projects_query,
            key_init=stage.key_init,
            **options_at(place),
        )

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        query, value = self._query_value(x)
        query, value = self._split_heads(query), self._split_heads(value)
        key = self.static_key.expand_as(query)
        if taps is not None:
            taps.append(Tap(query, key, value))
        return self._project(self._attend(query, key, value))

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """The key (h, N, d) is resized over its tokens. A softmax adapts to their number."""
        key = resize_tokens(self.static_key, 1, old, new)
        return [*super().resized(old, new), Change(self, "static_key", key)]
