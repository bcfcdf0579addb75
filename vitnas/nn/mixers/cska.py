"""Convolutional static-key attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens
from vitnas.nn.layers.tokens import Grid, to_picture
from vitnas.nn.mixers.attention import options_at
from vitnas.nn.mixers.base import Place, Tap
from vitnas.nn.mixers.ska import KeyInit, StaticKeyMixer, init_key


class ConvStaticKeyAttention(StaticKeyMixer):
    """softmax(M / sqrt(d)) V, where the output of a grouped convolution of the query is M.

    V are the values, and d is the head_dim. Each head is one group of the convolution and
    has one output channel per token. Row n of the head's (N, N) logits M are the channels at
    position n. With a w x w kernel the convolution is a static key of length w^2 d: the logits of a
    head are U K^T, where U (N, w^2 d) is the w x w-unfolded query of the head and K (N, w^2 d) the
    convolution's weight.

    Source: Static Key Attention, Section 4.2 and Table 6. Algorithm 2 of the paper is not valid
    code and describes another mechanism, a dynamic key. Two defaults differ from the paper: the
    logits are divided by sqrt(d), and the convolution starts as truncated normal 0.02. The paper's
    kernel is 3x3; its Section 7 names the choice of the kernel as open.

    A class token is not in the grid. Its row comes first and has its own static key (h, N, d).

    Args:
        dim: channels C.
        num_heads: heads h; d = A / h, where A are the channels of Q, C by default.
        num_tokens: N, class token included.
        class_token: whether the first token is one.
        key_init: `trunc_normal` or `randn`.
        key_kernel: w, odd.
        **attention: as for `StaticKeyMixer`; the convolution always has a bias.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters (2 + q) C A + w^2 N A + h N and biases, and N A
    more with a class token.
    MACs: ``N * A * ((2 + q) * C + N + w**2 * (N - c) + c)``; c is 1 with a class token, else 0; q
    is 1 if the query is projected, else 0.
    Randomness: dropout, in training only.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_tokens: int,
        *,
        class_token: bool = False,
        key_init: KeyInit = "trunc_normal",
        key_kernel: int = 3,
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        self.num_tokens, half = num_tokens, key_kernel // 2
        self.key = nn.Conv2d(
            self.width, num_heads * num_tokens, key_kernel, padding=half, groups=num_heads
        )
        self.class_key: nn.Parameter | None = None
        if class_token:
            self.class_key = nn.Parameter(torch.empty(num_heads, num_tokens, self.head_dim))
            init_key(self.class_key, key_init)
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
            q_proj=stage.projects_query,
            key_init=stage.key_init,
            key_kernel=stage.key_kernel,
            **options_at(place),
        )

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        query, value = self._query_value(x)
        attention = self._map(self._scaled(self._logits(query, grid)))
        return self._project(self._apply_map(attention, self._split_heads(value)))

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

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """Output channels are (head, key token): the convolution's weight and bias over tokens."""
        conv, heads = self.key, self.num_heads
        changes = [*super().resized(old, new), Change(self, "num_tokens", new.tokens)]
        changes.append(Change(conv, "out_channels", heads * new.tokens))
        for name in ("weight", "bias"):
            by_head = torch.unflatten(getattr(conv, name), 0, (heads, old.tokens))
            changes.append(Change(conv, name, resize_tokens(by_head, 1, old, new).flatten(0, 1)))
        if self.class_key is not None:
            changes.append(Change(self, "class_key", resize_tokens(self.class_key, 1, old, new)))
        return changes
