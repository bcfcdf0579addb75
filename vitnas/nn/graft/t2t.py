"""T2T-ViT: a host of broad attention in BViT's Table V; timm does not have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from timm.layers import Mlp
from torch import Tensor, nn
from torch.nn.functional import linear, unfold

from vitnas.nn.layers.tokens import Grid, to_picture

TOKEN_DIM = 64
"""Channels of the tokens before the last soft split."""
_DROP = 0.1  # of the Performers, as in T2T-ViT's code
_EPS = 1e-8  # the sum of positive features may be as small as 0


class SoftSplit(NamedTuple):
    """A cut of a picture into square pieces that overlap: sides in pixels."""

    kernel: int
    stride: int
    padding: int

    def grid(self, before: Grid) -> Grid:
        """How many pieces a picture `before` has, down and across."""
        down, across = ((n + 2 * self.padding - self.kernel) // self.stride + 1 for n in before)
        return down, across

    def __call__(self, picture: Tensor) -> Tensor:
        """`(B, C, H, W)` -> `(B, N, C kernel^2)`."""
        return unfold(picture, self.kernel, 1, self.padding, self.stride).transpose(1, 2)


def soft_splits(patch_size: int) -> tuple[SoftSplit, ...]:
    """The three of T2T-ViT, whose patches have 16 px; of patches of 8 or 4 px the first cut has a
    smaller stride.

    Raises:
        ValueError: another number.
    """
    if patch_size not in (4, 8, 16):
        raise ValueError(f"patch_size is 4, 8 or 16, not {patch_size}")
    stride = patch_size // 4
    return (SoftSplit(7, stride, (8 - stride) // 2), SoftSplit(3, 2, 1), SoftSplit(3, 2, 1))


class Performer(nn.Module):
    """Attention in linear time, then an MLP; the values, not the input, go round the attention.

    With random features phi(x) = exp(W x - |x|^2 / 2) / sqrt(m), and of a token n the query q_n,
    key k_n and value v_n of x_n, after a norm:

        y_n = v_n + proj(sum_j phi(q_n) phi(k_j) v_j / sum_j phi(q_n) phi(k_j))
        out_n = y_n + mlp(norm(y_n))

    Source: Choromanski et al. 2021, as T2T-ViT's code has it: one head, m = 32 features, fixed
    orthogonal rows of W of norm sqrt(m), logits that are not scaled.

    Args:
        in_dim: channels of the pieces.
        dim: channels C of queries, keys, values and the result.

    Shape: `(B, N, in_dim)` -> `(B, N, dim)`.
    """

    features: Tensor

    def __init__(self, in_dim: int, dim: int = TOKEN_DIM) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(in_dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(in_dim, 3 * dim)
        self.proj, self.proj_drop = nn.Linear(dim, dim), nn.Dropout(_DROP)
        self.mlp = Mlp(dim, dim)
        self.mlp_drop = nn.Dropout(_DROP)
        rows = nn.init.orthogonal_(torch.empty(dim // 2, dim))
        self.register_buffer("features", rows * math.sqrt(dim // 2))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        query, key = self.phi(query), self.phi(key)
        sums = query @ key.sum(dim=1).unsqueeze(2)
        mixed = query @ (key.transpose(1, 2) @ value) / (sums + _EPS)
        y = value + self.proj_drop(self.proj(mixed))
        out: Tensor = y + self.mlp_drop(self.mlp(self.norm2(y)))
        return out

    def phi(self, x: Tensor) -> Tensor:
        """`(B, N, C)` -> `(B, N, m)`, positive."""
        half = (x * x).sum(dim=-1, keepdim=True) / 2
        return (linear(x, self.features) - half).exp() / math.sqrt(len(self.features))


class TokensToToken(nn.Module):
    """Images `(B, C, H, W)` -> tokens `(B, N, embed_dim)`, in the place of timm's `PatchEmbed`.

    Soft split, Performer, soft split, Performer, soft split, linear layer.

    Source: T2T-ViT (Yuan et al. 2021), Section 3.1, with the Performer of its lite networks.

    Args:
        img_size, patch_size: in pixels; see `soft_splits`.
        in_chans, embed_dim, bias: as of `PatchEmbed`.
        dynamic_img_pad: must be False.
        device, dtype: timm passes them; the network is built on the CPU.

    Raises:
        ValueError: an argument that it does not take.
    """

    def __init__(
        self,
        img_size: int | Sequence[int],
        patch_size: int,
        in_chans: int,
        embed_dim: int,
        bias: bool = True,
        dynamic_img_pad: bool = False,
        device: None = None,
        dtype: None = None,
    ) -> None:
        super().__init__()
        if dynamic_img_pad:
            raise ValueError("T2T-ViT pads no image")
        self.splits, self.patch_size = soft_splits(patch_size), (patch_size, patch_size)
        first, later, last = (split.kernel**2 for split in self.splits)
        self.performers = nn.ModuleList(
            Performer(dim) for dim in (in_chans * first, TOKEN_DIM * later)
        )
        self.proj = nn.Linear(TOKEN_DIM * last, embed_dim, bias)
        self.set_input_size(img_size)

    def set_input_size(
        self, img_size: int | Sequence[int] | None = None, patch_size: Any = None
    ) -> None:
        """As timm's; the weights fit every size of image."""
        if patch_size not in (None, self.patch_size[0], self.patch_size):
            raise ValueError("the patches of a built T2T-ViT do not change")
        if img_size is not None:
            height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
            self.img_size = (height, width)
        self.grids = [self.img_size]
        for split in self.splits:
            self.grids.append(split.grid(self.grids[-1]))
        self.grid_size = self.grids[-1]
        self.num_patches = self.grid_size[0] * self.grid_size[1]

    def dynamic_feat_size(self, img_size: tuple[int, int]) -> tuple[int, int]:
        """(H, W) of the tokens; timm's `forward_intermediates` asks for it."""
        return self.grid_size

    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[2:] == self.img_size, f"images have {tuple(x.shape[2:])} px"
        for split, performer, grid in zip(
            self.splits, self.performers, self.grids[1:], strict=False
        ):
            x = to_picture(performer(split(x)), grid)
        out: Tensor = self.proj(self.splits[-1](x))
        return out


def sinusoids(positions: int, dim: int) -> Tensor:
    """Fixed positions `(1, positions, dim)`: sine in even channels, cosine in odd ones.

    Source: Vaswani et al. 2017, Section 3.5.
    """
    rates = 10_000.0 ** (-2 * (torch.arange(dim) // 2) / dim)
    angles = torch.arange(positions).unsqueeze(1) * rates
    return torch.where(torch.arange(dim) % 2 == 0, angles.sin(), angles.cos()).unsqueeze(0)
