"""Convolutional static-key attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitnas.nn.layers.tokens import Grid, to_picture
from vitnas.nn.mixers.base import Place, Tap, TokenMixer
from vitnas.nn.mixers.ska import KeyInit, init_key


class ConvStaticKeyAttention(TokenMixer):
    """softmax(M / sqrt(d)) V, where a grouped 3x3 convolution on the query grid IS the map M.

    Source: Static Key Attention, Section 4.2 and Table 6. Each head is one group of the
    convolution and has one output channel per token; row n of the head's (N, N) map are the
    channels at position n. Algorithm 2 of the paper is not valid code and describes another
    mechanism, a dynamic key. We differ in two defaults: the logits are divided by sqrt(d), and the
    convolution starts as truncated normal 0.02, like the static key that it is:

        the map of a head is U K^T with U (N, 9d) the 3x3-unfolded query of the head and
        K (N, 9d) the convolution's weight, i.e. a static key of length 9d.

    A class token is no part of the grid. Its row comes first and has its own static key (h, N, d).

    Args:
        dim: channels C.
        num_heads: heads h; d = C / h.
        num_tokens: N, class token included.
        class_token: whether the first token is one.
        qkv_bias, proj_bias: whether the linear layers have one; the convolution always has.
        qk_scale: whether logits are divided by sqrt(d).
        key_init: `trunc_normal` or `randn`.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters 3 C^2 + 9 N C + h N and biases, with a class token
    N C more.
    MACs: ``N * C * (3 * C + 10 * N - 8 * c)``; c is 1 where there is a class token, else 0.
    Randomness: none after construction.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_tokens: int,
        *,
        class_token: bool = False,
        qkv_bias: bool = True,
        proj_bias: bool = True,
        qk_scale: bool = True,
        key_init: KeyInit = "trunc_normal",
    ) -> None:
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.num_tokens = num_tokens
        self.scale = self.head_dim**-0.5 if qk_scale else 1.0
        self.qv = nn.Linear(dim, 2 * dim, bias=qkv_bias)
        self.key = nn.Conv2d(dim, num_heads * num_tokens, 3, padding=1, groups=num_heads)
        self.class_key: nn.Parameter | None = None
        if class_token:
            self.class_key = nn.Parameter(torch.empty(num_heads, num_tokens, self.head_dim))
            init_key(self.class_key, key_init)
        self.proj = nn.Linear(dim, dim, bias=proj_bias)
        init_key(self.key.weight, key_init)
        nn.init.zeros_(self.key.bias)  # type: ignore[arg-type]

    @classmethod
    def at(cls, place: Place) -> ConvStaticKeyAttention:
        config, stage = place.config, place.stage_config
        return cls(
            stage.embed_dim,
            stage.heads,
            place.num_tokens,
            class_token=config.class_token,
            qkv_bias=config.qkv_bias,
            proj_bias=config.proj_bias,
            qk_scale=stage.qk_scale,
            key_init=stage.key_init,
        )

    def forward(
        self, x: Tensor, grid: Grid, passed: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        query, value = self.qv(x).chunk(2, dim=-1)
        value = self._split_heads(value)
        attention = (self.scale * self._logits(query, grid)).softmax(dim=-1)
        out: Tensor = self.proj((attention @ value).transpose(1, 2).flatten(2))
        return out

    def _logits(self, query: Tensor, grid: Grid) -> Tensor:
        """`(B, N, C)` -> the maps `(B, h, N, N)` before scale and softmax."""
        if self.class_key is None:
            return self._patch_rows(query, grid)
        class_row = self._split_heads(query[:, :1]) @ self.class_key.transpose(
            -2, -1
        )  # (B, h, 1, N)
        return torch.cat([class_row, self._patch_rows(query[:, 1:], grid)], dim=2)

    def _patch_rows(self, query: Tensor, grid: Grid) -> Tensor:
        picture = self.key(to_picture(query, grid))  # (B, h * N, H, W)
        rows = torch.unflatten(picture.flatten(2), 1, (self.num_heads, self.num_tokens))
        return rows.transpose(-2, -1)

    def _split_heads(self, x: Tensor) -> Tensor:
        """`(B, N, C)` -> `(B, h, N, d)`."""
        return torch.unflatten(x, 2, (self.num_heads, self.head_dim)).transpose(1, 2)
