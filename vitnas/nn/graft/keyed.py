"""Static keys for each window of SKA's Swin, and its CSTU, whose key a convolution computes."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vitnas.config.graft import GraftConfig
from vitnas.nn.graft.attention import Mixers, Site, StaticKeyGraft
from vitnas.nn.graft.windows import Windowed
from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens
from vitnas.nn.layers.tokens import Grid, from_windows, to_picture, to_tokens, to_windows
from vitnas.nn.mixers.base import Place, Tap
from vitnas.nn.mixers.ska import KeyInit, StaticKeyAttention, StaticKeyMixer, init_key


class KeyedSka(Windowed, StaticKeyAttention):
    """`ska` inside windows, each with a static key of its own."""

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """The keys are resized over the whole grid; windows keep their size, so there are more."""
        (side, _), (after, _) = self._window_of(old).grid, new.grid
        whole = self.key_of_grid(old.grid)
        key = to_windows(resize_tokens(whole, 1, old, new), new.grid, after // side)
        by_head = self._split_heads(key).transpose(0, 1).flatten(1, 2)
        return [Change(self, "static_key", by_head)]


class ConvKeyCska(Windowed, StaticKeyMixer):
    """softmax(Q K^T / sqrt(d) + R) V, where K is a convolution of Q with weights of the window.

    In each head a w x w convolution turns the d channels of the query into those of the key. Each
    window has weights of its own, and zeros surround it. This key depends on the image.

    Source: zizhao-hu/SKA, `smallscaleexp/models/swin_cstu.py`; Algorithm 2 of the paper has such a
    key, its Section 4.2 has the maps of `ConvStaticKeyAttention`.

    Args:
        dim: channels C.
        num_heads: heads h; d = A / h.
        num_keys: the number of tokens, which no weight depends on.
        key_init: `trunc_normal` or `randn`.
        key_kernel: w, odd.
        **attention: as for `StaticKeyMixer`.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    Randomness: dropout, in training only.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        num_keys: int,
        *,
        key_init: KeyInit = "trunc_normal",
        key_kernel: int = 3,
        **attention: Any,
    ) -> None:
        super().__init__(dim, num_heads, **attention)
        count = self.windows**2
        channels, groups = count * self.width, count * num_heads
        self.key = nn.Conv2d(channels, channels, key_kernel, padding=key_kernel // 2, groups=groups)
        init_key(self.key.weight, key_init)
        nn.init.zeros_(self.key.bias)  # type: ignore[arg-type]

    @classmethod
    def at(cls, place: Place) -> ConvKeyCska:
        raise NotImplementedError("no model file has it")

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        parts = self._query_value(x, grid, pass_index)
        query, value = (to_windows(part, grid, self.windows) for part in parts)
        key = self._key_of(query, self._window_of(TokenLayout(grid, 0)).grid)
        mixed = self._attend(*(self._split_heads(part) for part in (query, key, value)))
        return self._project(from_windows(mixed, grid, self.windows))

    def _key_of(self, query: Tensor, grid: Grid) -> Tensor:
        """`(B * W, n, A)` -> the same; windows are beside each other in the channels."""
        count = self.windows**2
        picture = torch.unflatten(to_picture(query, grid), 0, (-1, count)).flatten(1, 2)
        keys = torch.unflatten(self.key(picture), 1, (count, self.width)).flatten(0, 1)
        return to_tokens(keys)

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """The weights are resized over the grid of windows; windows keep their size."""
        side = self._window_of(old).grid[0]
        windows = (
            TokenLayout((size // side, size // side), 0) for size in (old.grid[0], new.grid[0])
        )
        before, after = windows
        changes = []
        for name in ("weight", "bias"):
            tensor = getattr(self.key, name)
            by_window = tensor.reshape(1, before.tokens, -1)
            resized = resize_tokens(by_window, 1, before, after)
            changes.append(Change(self.key, name, resized.reshape(-1, *tensor.shape[1:])))
        return changes


class KeyedGraft(StaticKeyGraft):
    """As `StaticKeyGraft`, in `SkaSwin`: each window has a key of its own.

    It keeps the windows, their shift and mask, and the table of relative positions, which still
    learns.

    Source: zizhao-hu/SKA, `smallscaleexp/models/swin_stu.py` and `swin_cstu.py`.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    mixers: ClassVar[Mixers] = {"ska": KeyedSka, "cska": ConvKeyCska}

    def __init__(self, site: Site, config: GraftConfig) -> None:
        super().__init__(site, config)
        self.places = site.attention.places
        self.mixer.fused_attn = False

    def options(self, site: Site, config: GraftConfig) -> dict[str, Any]:
        options = {**super().options(site, config), "windows": site.attention.places.windows}
        options.pop("class_token", None)
        return options

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        self.check(x)
        self.mixer.offset = self.places.offset()
        try:
            mixed = self.mixer(self.places.shifted(x), self.grid)
        finally:
            self.mixer.offset = None
        out: Tensor = self.places.back(mixed)
        return out
