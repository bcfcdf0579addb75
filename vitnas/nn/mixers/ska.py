"""Static-key attention."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.nn.layers.init import truncated_normal_
from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens
from vitnas.nn.layers.tokens import Grid, from_windows, to_windows
from vitnas.nn.mixers.attention import AttentionMixer, options_at
from vitnas.nn.mixers.base import Place, Tap

KeyInit = Literal["trunc_normal", "randn"]


def init_key(key: Tensor, init: KeyInit) -> None:
    """Fill a static key: truncated normal 0.02, or the paper's randn (it saturates the softmax)."""
    if init == "trunc_normal":
        truncated_normal_(key)
    else:
        nn.init.normal_(key)


class StaticKeyMixer(AttentionMixer):
    """The common part of `ska` and `cska`: there is no key projection.

    With convolutions that have a stride, there are M < N values and keys.

    Args:
        dim: channels C.
        num_heads: heads h; head_dim d = A / h, where A are the channels of Q, C by default.
        qkv_bias: whether query and value have a bias.
        q_proj: whether the query is a projection of the tokens; else the tokens are the query.
        windows: windows along each side of the grid, W = windows^2 in all; tokens attend inside
            their window.
        grid: (H, W) of the tokens, for those who look at maps of windows.
        **attention: as for `AttentionMixer`.
    """

    convolved = ("query", "value")

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        qkv_bias: bool = True,
        q_proj: bool = True,
        windows: int = 1,
        grid: Grid | None = None,
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        self.q_proj, self.windows, self.grid = q_proj, windows, grid
        self.qv = nn.Linear(dim, (2 if q_proj else 1) * self.width, bias=qkv_bias)

    def _query_value(self, x: Tensor, grid: Grid, pass_index: int) -> tuple[Tensor, Tensor]:
        """`(B, N, C)` -> query `(B, N, A)` and value `(B, M, A)`."""
        if self.convs:
            return self._convolved_query_value(x, grid, pass_index)
        projected = self.qv(x)
        if not self.q_proj:
            return x, projected
        query, value = projected.chunk(2, dim=-1)
        return query, value

    def _convolved_query_value(
        self, x: Tensor, grid: Grid, pass_index: int
    ) -> tuple[Tensor, Tensor]:
        query, value = (self._input(name, x, grid, pass_index) for name in self.convolved)
        if not self.q_proj:
            return query, self.qv(value)
        bias = self.qv.bias
        halves = slice(None, self.width), slice(self.width, None)
        query, value = (
            F.linear(part, self.qv.weight[half], None if bias is None else bias[half])
            for part, half in zip((query, value), halves, strict=True)
        )
        return query, value

    def _window_of(self, layout: TokenLayout) -> TokenLayout:
        """The tokens of a window, or all tokens without windows; likewise for keys."""
        height, width = layout.grid
        return TokenLayout((height // self.windows, width // self.windows), layout.prefix)

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return [*super().resized(old, new), Change(self, "grid", new.grid)]


def static_key_options(place: Place) -> dict[str, Any]:
    """The options of `ska` and `cska` at `place`."""
    stage = place.stage_config
    return {
        "qkv_bias": place.config.qkv_bias,
        "q_proj": stage.projects_query,
        "key_init": stage.key_init,
        "windows": stage.windows,
        "grid": place.grid,
        **options_at(place),
    }


class StaticKeyAttention(StaticKeyMixer):
    """softmax(Q K^T / sqrt(d)) V with a learned key K of shape (h, M, d), the same for all images.

    Q are the queries `(B, h, N, d)` and V the values `(B, h, M, d)`, projected from the tokens. M
    is N, unless the values are convolved with a stride, as in SKA's CvT at 32 px.

    Source: Static Key Attention, Section 4.1, Algorithm 1 and Table 6. The query is a projection,
    unless `q_proj` is False. Section 4.1 prints the axes of the key's shape in the wrong order. Two
    defaults differ from the paper: the logits are divided by sqrt(d), and the key starts as
    truncated normal 0.02.

    The key belongs to the positions of one resolution. So tokens cannot be sliced into groups, and
    their number is fixed. They can be cut into windows of n tokens each. Then K has one key for
    each window, one window after the other, and tokens attend inside their window.

    Args:
        dim: channels C.
        num_heads: heads h; d = A / h, where A are the channels of Q, C by default.
        num_keys: M, class token included.
        key_init: `trunc_normal` or `randn`.
        **attention: as for `StaticKeyMixer`.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters (2 + q) C A + M A and biases.
    MACs: ``((1 + q) * N + m) * C * A + 2 * N * A * n + u**2 * C * (N + m - 2 * p)``; q is 1 where
    the query is projected, else 0; m is M; u is the side of the convolutions, 0 without; p is the
    number of tokens before the grid.
    Randomness: dropout, in training only.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_keys: int,
        *,
        key_init: KeyInit = "trunc_normal",
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        self.static_key = nn.Parameter(torch.empty(num_heads, num_keys, self.head_dim))
        init_key(self.static_key, key_init)

    @classmethod
    def at(cls, place: Place) -> StaticKeyAttention:
        stage = place.stage_config
        return cls(
            stage.embed_dim,
            stage.heads,
            place.num_keys,
            **static_key_options(place),
        )

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        parts = self._query_value(x, grid, pass_index)
        inner = (to_windows(part, grid, self.windows) for part in parts)
        query, value = (self._split_heads(part) for part in inner)
        key = self._keys(x.shape[0])
        if taps is not None:
            taps.append(Tap(*(self._whole(part, grid) for part in (query, key, value))))
        mixed = self._attend(query, key, value)
        return self._project(from_windows(mixed, grid, self.windows))

    def _by_window(self) -> Tensor:
        """The key `(h, W, n, d)`."""
        return torch.unflatten(self.static_key, 1, (self.windows**2, -1))

    def _keys(self, batch: int) -> Tensor:
        """The key for `batch` images, `(B * W, h, n, d)`."""
        keys = self._by_window().transpose(0, 1)
        return keys.expand(batch, -1, -1, -1, -1).flatten(0, 1)

    def key_of_grid(self, grid: Grid) -> Tensor:
        """The key of all tokens in their order, `(1, N, A)`."""
        return self._whole(self._keys(1), grid).transpose(1, 2).flatten(2)

    def _whole(self, part: Tensor, grid: Grid) -> Tensor:
        """`(B * W, h, n, d)` -> `(B, h, N, d)`: the windows as one grid."""
        if self.windows == 1:
            return part
        return self._split_heads(from_windows(part.transpose(1, 2).flatten(2), grid, self.windows))

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """The key of each window is resized over its tokens. A softmax adapts to their number."""
        sides = (self._window_of(self._keys_of(layout)) for layout in (old, new))
        key = resize_tokens(self._by_window(), 2, *sides).flatten(1, 2)
        return [*super().resized(old, new), Change(self, "static_key", key)]
