"""Static keys inside Swin's windows, with Swin's relative positions and masks."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.graft import GraftConfig
from vitnas.nn.graft.attention import Mixers, Site, StaticKeyGraft
from vitnas.nn.layers.tokens import Grid, to_picture
from vitnas.nn.mixers.attention import AttentionMixer
from vitnas.nn.mixers.cska import ConvStaticKeyAttention
from vitnas.nn.mixers.ska import StaticKeyAttention


class Windowed(AttentionMixer):
    """An attention mixer inside windows: something is added to its logits.

    Attributes, set only during a call:
        offset: what is added: `(w, h, N, N)` for the w windows of an image; w = 1 if all windows
            have the same.
        inside: `(w, k * k, N)`: for each token, which of its k x k neighbours (itself is the middle
            one) are in its own region of the window. None if the window is one region.
    """

    offset: Tensor | None = None
    inside: Tensor | None = None

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return self._apply_map(self._map_of(query, key), value)

    def _map(self, logits: Tensor) -> Tensor:
        assert self.offset is not None
        by_image = torch.unflatten(logits, 0, (-1, self.offset.shape[0]))
        return super()._map((by_image + self.offset).flatten(0, 1))


class WindowSka(Windowed, StaticKeyAttention):
    """`ska` inside a window."""


class WindowCska(Windowed, ConvStaticKeyAttention):
    """`cska` inside a window. In shifted windows its convolution stays within a region.

    A shifted window at the border of the picture holds tokens from opposite sides of the picture.
    There the k x k convolution is computed in its equal form: a key of length k^2 d times the k x
    k-unfolded query. Neighbours from the other side are set to zero, like those beyond the border
    of the grid.
    """

    def _patch_rows(self, query: Tensor, grid: Grid) -> Tensor:
        if self.inside is None:
            return super()._patch_rows(query, grid)
        tokens, dim = query.shape[1:]
        windows, near = self.inside.shape[:2]
        side = self.key.kernel_size[0]
        taps = F.unfold(to_picture(query, grid), side, padding=side // 2)  # (B * w, C * k^2, N)
        taps = taps.reshape(-1, windows, dim, near, tokens) * self.inside[:, None]
        taps = taps.reshape(-1, self.num_heads, self.head_dim * near, tokens)
        weight, bias = self._scaled_key()
        bias = bias.reshape(self.num_heads, 1, tokens)
        weight = weight.reshape(self.num_heads, tokens, -1)
        return taps.transpose(-2, -1) @ weight.transpose(-2, -1) + bias


class WindowGraft(StaticKeyGraft):
    """As `StaticKeyGraft`, in a window of Swin: softmax(Q K^T / sqrt(d) + R + M) V.

    Q `(N, d)` are the queries, K the static key, V the values. R is Swin's relative position
    bias: its table is kept, bit for bit, and still learns. M is Swin's mask, which timm passes to
    `forward`: in a cyclically shifted window, tokens from opposite sides of the picture do not see
    each other, neither in the map nor in the convolution of `cska`. The static key is for positions
    in the window and is the same for all windows.

    Shape: `(B * w, N, C)` for w windows of N tokens -> the same.
    """

    mixers: ClassVar[Mixers] = {
        "ska": WindowSka,
        "cska": WindowCska,
    }
    neighbours: Tensor
    relative_position_bias_table: nn.Parameter
    relative_position_index: Tensor

    def __init__(self, site: Site, config: GraftConfig) -> None:
        super().__init__(site, config)
        old = site.attention
        self.relative_position_bias_table = old.relative_position_bias_table
        for name, index in (
            ("relative_position_index", old.relative_position_index),
            ("neighbours", neighbours_in(site.grid, config.key_kernel).to(old.qkv.weight.device)),
        ):
            self.register_buffer(name, index, persistent=False)
        self.mixer.fused_attn = False

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """`mask`: `(w, N, N)` for an image's w windows, 0 within a region and -100 between two."""
        self.check(x)
        self.mixer.offset = self._relative_positions()
        if mask is not None:
            self.mixer.offset = self.mixer.offset + mask[:, None]
            near = mask.gather(1, self.neighbours.expand(mask.shape[0], -1, -1))
            self.mixer.inside = (near == 0).to(x.dtype)
        try:
            out: Tensor = self.mixer(x, self.grid)
        finally:
            self.mixer.offset = self.mixer.inside = None
        return out

    def _relative_positions(self) -> Tensor:
        """`(1, h, N, N)`."""
        pairs = self.relative_position_bias_table[self.relative_position_index.flatten()]
        return torch.unflatten(pairs, 0, (self.num_tokens, -1)).permute(2, 0, 1)[None]

    def set_window_size(self, window_size: Grid) -> None:
        """timm's `set_input_size` calls this. The key keeps its size; `forward` checks it."""


def neighbours_in(grid: Grid, kernel: int = 3) -> Tensor:
    """`(k * k, N)`: each token's k x k neighbours; index 0 for those beyond the grid."""
    numbers = torch.arange(float(grid[0] * grid[1])).reshape(1, 1, *grid)
    return F.unfold(numbers, kernel, padding=kernel // 2)[0].long()
