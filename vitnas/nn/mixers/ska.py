"""Static-key attention."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from timm.layers import trunc_normal_
from torch import Tensor, nn

from vitnas.nn.layers.init import STD
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.base import Place, Tap, TokenMixer

KeyInit = Literal["trunc_normal", "randn"]


def init_key(key: Tensor, init: KeyInit) -> None:
    """Fill a static key: truncated normal 0.02, or the paper's randn, which saturates softmax."""
    if init == "trunc_normal":
        trunc_normal_(key, std=STD)
    else:
        nn.init.normal_(key)


class StaticKeyAttention(TokenMixer):
    """softmax(Q K^T / sqrt(d)) V with a learned key K of shape (h, N, d), the same for all images.

    Source: Static Key Attention, Section 4.1, Algorithm 1 and Table 6. There is a query
    projection. Section 4.1 prints the key's shape the wrong way round. We differ in two defaults:
    the logits are divided by sqrt(d), and the key starts as truncated normal 0.02.

    The key is bound to the positions of one resolution: tokens can be neither sliced nor of
    another number.

    Args:
        dim: channels C.
        num_heads: heads h; d = C / h.
        num_tokens: N, class token included.
        qkv_bias, proj_bias: whether the linear layers have one.
        qk_scale: whether logits are divided by sqrt(d).
        key_init: `trunc_normal` or `randn`.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters 3 C^2 + N C and biases.
    MACs: ``N * (3 * C**2 + 2 * N * C)``
    Randomness: none after construction.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_tokens: int,
        *,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        qk_scale: bool = True,
        key_init: KeyInit = "trunc_normal",
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5 if qk_scale else 1.0
        self.qv = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.static_key = nn.Parameter(torch.empty(num_heads, num_tokens, self.head_dim))
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        init_key(self.static_key, key_init)

    @classmethod
    def at(cls, place: Place) -> StaticKeyAttention:
        config, stage = place.config, place.stage_config
        return cls(
            stage.embed_dim,
            stage.heads,
            place.num_tokens,
            qkv_bias=config.qkv_bias,
            proj_bias=config.proj_bias,
            qk_scale=stage.qk_scale,
            key_init=stage.key_init,
        )

    def forward(
        self, x: Tensor, grid: Grid, passed: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        qv = torch.unflatten(self.qv(x), 2, (2, self.num_heads, self.head_dim))
        query, value = qv.permute(2, 0, 3, 1, 4).unbind(0)  # (B, h, N, d) each
        key = self.static_key.expand_as(query)
        if taps is not None:
            taps.append(Tap(query, key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, scale=self.scale)
        out: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return out
