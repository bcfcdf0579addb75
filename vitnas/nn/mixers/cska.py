"""Convolutional static-key attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens
from vitnas.nn.layers.tokens import Grid, from_windows, to_picture, to_windows
from vitnas.nn.mixers.base import Place, Tap
from vitnas.nn.mixers.ska import KeyInit, StaticKeyMixer, init_key, static_key_options


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

    With windows, the map of each is that of its n tokens alone: its convolution has weights of its
    own, N is n in what is said above, and zeros surround the window.

    A class token is not in the grid. Its row comes first and has its own static key (h, M, d).

    Where the values are convolved with a stride, there are M < N of them, and a head has one output
    channel for each.

    Args:
        dim: channels C.
        num_heads: heads h; d = A / h, where A are the channels of Q, C by default.
        num_keys: M, class token included; N without a stride.
        class_token: whether the first token is one.
        key_init: `trunc_normal` or `randn`.
        key_kernel: w, odd.
        **attention: as for `StaticKeyMixer`; the convolution always has a bias.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters (2 + q) C A + w^2 M A + h M and biases, and M A
    more with a class token.
    MACs: ``A * (((1+q) * N + m) * C + n * (N + w**2 * (N-c) + c)) + u**2 * C * (N + m - 2*p)``;
    n is M, or the tokens of a window; c is 1 with a class token, else 0; q is 1 if the query is
    projected, else 0; m is M; u is the side of the convolutions before the projections, 0 without;
    p is the number of tokens before the grid.
    Randomness: dropout, in training only.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_keys: int,
        *,
        class_token: bool = False,
        key_init: KeyInit = "trunc_normal",
        key_kernel: int = 3,
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        count, half = self.windows**2, key_kernel // 2
        self.num_keys = num_keys // count
        self.key = nn.Conv2d(
            count * self.width,
            num_heads * num_keys,
            key_kernel,
            padding=half,
            groups=count * num_heads,
        )
        self.class_key: nn.Parameter | None = None
        if class_token:
            self.class_key = nn.Parameter(torch.empty(num_heads, num_keys, self.head_dim))
            init_key(self.class_key, key_init)
        init_key(self.key.weight, key_init)
        nn.init.zeros_(self.key.bias)  # type: ignore[arg-type]

    @classmethod
    def at(cls, place: Place) -> ConvStaticKeyAttention:
        config, stage = place.config, place.stage_config
        return cls(
            stage.embed_dim,
            stage.heads,
            place.num_keys,
            class_token=config.class_token,
            key_kernel=stage.key_kernel,
            **static_key_options(place),
        )

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        query, value = self._query_value(x, grid, pass_index)
        query, value = (to_windows(part, grid, self.windows) for part in (query, value))
        inside = self._window_of(TokenLayout(grid, 0)).grid
        attention = self._map(self._logits(query, inside))
        mixed = self._apply_map(attention, self._split_heads(value))
        return self._project(from_windows(mixed, grid, self.windows))

    def _logits(self, query: Tensor, grid: Grid) -> Tensor:
        """`(B * W, n, A)` -> the maps `(B * W, h, n, m)` before softmax.

        Scale and temperature are on the weights, which are smaller than the maps.
        """
        if self.class_key is None:
            return self._patch_rows(query, grid)
        class_row = self._split_heads(self._scaled(query[:, :1])) @ self.class_key.transpose(
            -2, -1
        )  # (B, h, 1, M)
        return torch.cat([class_row, self._patch_rows(query[:, 1:], grid)], dim=2)

    def _patch_rows(self, query: Tensor, grid: Grid) -> Tensor:
        count = self.windows**2  # its windows are beside each other in the channels
        picture = torch.unflatten(to_picture(query, grid), 0, (-1, count)).flatten(1, 2)
        padding, groups = self.key.padding, self.key.groups
        picture = F.conv2d(picture, *self._scaled_key(), padding=padding, groups=groups)
        logits = picture.flatten(2)  # (B, W * h * m, n)
        rows = torch.unflatten(logits, 1, (count, self.num_heads, self.num_keys))
        return rows.flatten(0, 1).transpose(-2, -1)

    def _scaled_key(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the convolution, for logits that need no scale."""
        assert self.key.bias is not None
        return self._scaled(self.key.weight), self._scaled(self.key.bias)

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """Output channels are (window, head, key token); weight and bias are over tokens."""
        conv, changes = self.key, super().resized(old, new)
        old, new = self._keys_of(old), self._keys_of(new)
        before, after = self._window_of(old), self._window_of(new)
        changes.append(Change(self, "num_keys", after.tokens))
        changes.append(Change(conv, "out_channels", conv.groups * after.tokens))
        for name in ("weight", "bias"):
            by_head = torch.unflatten(getattr(conv, name), 0, (conv.groups, before.tokens))
            resized = resize_tokens(by_head, 1, before, after)
            changes.append(Change(conv, name, resized.flatten(0, 1)))
        if self.class_key is not None:
            changes.append(Change(self, "class_key", resize_tokens(self.class_key, 1, old, new)))
        return changes
