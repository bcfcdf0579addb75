"""Swin as SKA's code has it: one table of relative positions for all heads, windows that shift."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from timm.layers import Mlp, trunc_normal_
from torch import Tensor, nn

from vitnas.nn.layers.init import STD, init_linear
from vitnas.nn.layers.tokens import Grid, from_windows, to_picture, to_tokens, to_windows


class Places(nn.Module):
    """A square grid cut into windows, after a cyclic shift, and what is added to their logits.

    Source: Swin (Liu et al. 2021), Section 3.2, in the form of SKA's code: the table of relative
    positions is the same for all heads. After a shift tokens from opposite sides of the picture do
    not see each other, also where one window is the whole grid.

    Args:
        grid: (H, W) of the tokens; H = W, and a multiple of w.
        window: side w of a window, in tokens.
        shift: by how many tokens the picture moves; 0 = not at all.

    Attributes:
        windows: windows along each side.
        table: `(2 w - 1, 2 w - 1)`, by the row and the column of the key minus those of the query.
    """

    index: Tensor
    hidden: Tensor

    def __init__(self, grid: Grid, window: int, shift: int) -> None:
        super().__init__()
        self.grid, self.shift, self.windows = grid, shift, grid[0] // window
        self.table = nn.Parameter(torch.zeros(2 * window - 1, 2 * window - 1))
        trunc_normal_(self.table, std=STD)
        for name, tensor in (("index", _pairs(window)), ("hidden", self._hidden())):
            self.register_buffer(name, tensor, persistent=False)

    def _hidden(self) -> Tensor:
        """`(windows^2, n, n)`: which tokens of a window were on another side of the picture."""
        last = torch.arange(self.grid[0]) >= self.grid[0] - self.shift
        region = (2 * last[:, None] + last[None, :].long()).flatten()
        inside = to_windows(region.reshape(1, -1, 1), self.grid, self.windows).squeeze(2)
        return inside[:, :, None] != inside[:, None, :]

    def offset(self) -> Tensor:
        """What is added to the logits: `(W, 1, n, n)` for an image's W windows; W = 1 for all."""
        side = self.index.shape[0]
        places = self.table.flatten()[self.index.flatten()].reshape(1, 1, side, side)
        if not self.shift:
            return places
        return places.masked_fill(self.hidden[:, None], float("-inf"))

    def shifted(self, tokens: Tensor) -> Tensor:
        """`(B, N, C)` -> the same, moved up and left."""
        return self._moved(tokens, -self.shift)

    def back(self, tokens: Tensor) -> Tensor:
        """The inverse of `shifted`."""
        return self._moved(tokens, self.shift)

    def _moved(self, tokens: Tensor, by: int) -> Tensor:
        if not by:
            return tokens
        return torch.unflatten(tokens, 1, self.grid).roll((by, by), dims=(1, 2)).flatten(1, 2)


class PlacedAttention(nn.Module):
    """softmax(Q K^T / sqrt(d) + R) V in windows; R are relative positions, see `Places`.

    Args:
        dim: channels C.
        num_heads: heads h.
        head_dim: channels d of a head.
        places: the windows.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    def __init__(self, dim: int, num_heads: int, head_dim: int, places: Places) -> None:
        super().__init__()
        self.num_heads, self.scale, self.places = num_heads, head_dim**-0.5, places
        self.qkv = nn.Linear(dim, 3 * num_heads * head_dim, bias=False)
        self.attn_drop, self.proj_drop = nn.Dropout(0.0), nn.Dropout(0.0)
        self.proj = nn.Linear(num_heads * head_dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        places = self.places
        inside = to_windows(places.shifted(x), places.grid, places.windows)
        query, key, value = (
            torch.unflatten(part, 2, (self.num_heads, -1)).transpose(1, 2)
            for part in self.qkv(inside).chunk(3, dim=-1)
        )
        offset = places.offset()
        logits = torch.unflatten(self.scale * query @ key.transpose(-2, -1), 0, (-1, len(offset)))
        attention = self.attn_drop((logits + offset).flatten(0, 1).softmax(dim=-1))
        mixed = from_windows(
            (attention @ value).transpose(1, 2).flatten(2), places.grid, places.windows
        )
        out: Tensor = self.proj_drop(self.proj(places.back(mixed)))
        return out


class PlacedBlock(nn.Module):
    """x + attn(norm1(x)), then x + mlp(norm2(x)). The MLP has 4 C hidden channels."""

    def __init__(self, dim: int, num_heads: int, head_dim: int, places: Places) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = PlacedAttention(dim, num_heads, head_dim, places)
        self.mlp = Mlp(dim, 4 * dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class PlacedStage(nn.Module):
    """Patches of `factor` x `factor`, a linear layer, then blocks; every second one is shifted.

    Shape: `(B, C', H', W')` -> `(B, N, C)`.
    """

    def __init__(
        self, channels: int, dim: int, factor: int, grid: Grid, blocks: list[PlacedBlock]
    ) -> None:
        super().__init__()
        self.grid = grid
        self.merge = nn.Conv2d(channels, dim, factor, factor)
        self.blocks = nn.Sequential(*blocks)

    def forward(self, picture: Tensor) -> Tensor:
        out: Tensor = self.blocks(to_tokens(self.merge(picture)))
        return out


class SkaSwin(nn.Module):
    """Swin of SKA's code for small images: `(B, C, H, H)` -> scores `(B, num_classes)`.

    Source: zizhao-hu/SKA, `smallscaleexp/models/swin_*.py`, after berniwal's
    `swin-transformer-pytorch`. It differs from timm's: one table of positions for all heads, linear
    layers with a bias and without a norm between the stages, and the mean over tokens comes before
    the last norm.

    Args:
        img_size: side in pixels.
        num_classes, in_chans: as in timm.
        embed_dim: channels of the first stage; each later one has twice as many.
        depths, num_heads: blocks and heads, one number per stage.
        head_dim: channels of a head.
        window_size: side of a window in tokens.
        downscaling_factors: how many tokens down and across each stage makes one, pixels in the
            first.

    Raises:
        ValueError: the image is not square, the windows do not cut the tokens of a stage, or the
            lists have not the same length.
    """

    def __init__(
        self,
        img_size: int | Sequence[int] = 32,
        num_classes: int = 10,
        in_chans: int = 3,
        embed_dim: int = 96,
        depths: Sequence[int] = (2, 2, 6, 2),
        num_heads: Sequence[int] = (3, 6, 12, 24),
        head_dim: int = 32,
        window_size: int = 4,
        downscaling_factors: Sequence[int] = (2, 2, 2, 1),
    ) -> None:
        super().__init__()
        side, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        if side != width:
            raise ValueError(f"images are square, not {side}x{width}")
        self.img_size, self.in_chans, self.num_classes = (side, side), in_chans, num_classes
        self.stages, channels = nn.ModuleList(), in_chans
        sizes = zip(depths, num_heads, downscaling_factors, strict=True)
        for number, (depth, heads, factor) in enumerate(sizes):
            dim, side = embed_dim * 2**number, side // factor
            if side < window_size or side % window_size:
                rule = f"stage {number} has {side}x{side} tokens, which windows of {window_size}x"
                raise ValueError(f"{rule}{window_size} do not cut")
            blocks = [
                PlacedBlock(
                    dim,
                    heads,
                    head_dim,
                    Places((side, side), window_size, index % 2 * window_size // 2),
                )
                for index in range(depth)
            ]
            self.stages.append(PlacedStage(channels, dim, factor, (side, side), blocks))
            channels = dim
        self.norm, self.head = nn.LayerNorm(channels), nn.Linear(channels, num_classes)
        self.apply(init_linear)

    def get_classifier(self) -> nn.Module:
        """As in timm."""
        return self.head

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for index, stage in enumerate(self.stages):
            before: PlacedStage = self.stages[index - 1]  # type: ignore[assignment]
            x = stage(x if index == 0 else to_picture(x, before.grid))
        scores: Tensor = self.head(self.norm(x.mean(dim=1)))
        return scores


def _pairs(window: int) -> Tensor:
    """`(n, n)`: the place in the flat table of each query and key of a window."""
    rows, columns = (
        axis.flatten() for axis in torch.meshgrid(*[torch.arange(window)] * 2, indexing="ij")
    )
    down, across = (axis[None, :] - axis[:, None] + window - 1 for axis in (rows, columns))
    return down * (2 * window - 1) + across
