"""CvT: a baseline of SKA's Table 1; timm does not have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from timm.layers import Mlp, QuickGELU, trunc_normal_
from torch import Tensor, nn

from vitnas.errors import ConfigError
from vitnas.nn.layers.init import STD, init_linear
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens


class StageSize(NamedTuple):
    """Channels, blocks and heads of a stage; kernel, stride and padding of its embedding."""

    dim: int
    depth: int
    num_heads: int
    kernel: int
    stride: int
    padding: int


CVT_13 = (
    StageSize(64, 1, 1, 7, 4, 2),
    StageSize(192, 2, 3, 3, 2, 1),
    StageSize(384, 10, 6, 3, 2, 1),
)


class ConvAttention(nn.Module):
    """softmax(Q K^T / sqrt(C)) V, where convolutions come before the projections to Q, K and V.

    Before each projection the patch tokens pass a depthwise 3x3 convolution and a norm.

    Source: CvT (Wu et al. 2021), Section 3.2. As in its code, the convolutions of key and value
    have stride 2, the scale uses all channels C, and a class token skips the convolutions.

    Args:
        dim: channels C.
        num_heads: heads h.
        grid: (H, W) of the patch tokens.
        prefix: 1 with a class token, which is the first token, else 0.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    def __init__(self, dim: int, num_heads: int, grid: Grid, prefix: int) -> None:
        super().__init__()
        self.num_heads, self.grid, self.prefix, self.scale = num_heads, grid, prefix, dim**-0.5
        self.fused_attn = True
        self.convs = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(dim, dim, 3, stride, padding=1, groups=dim, bias=False),
                nn.BatchNorm2d(dim),
            )
            for stride in (1, 2, 2)
        )
        self.qkv = nn.Linear(dim, 3 * dim)
        self.attn_drop, self.proj_drop = nn.Dropout(0.0), nn.Dropout(0.0)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        first, picture = x[:, : self.prefix], to_picture(x[:, self.prefix :], self.grid)
        parts = zip(self.convs, self.qkv.weight.chunk(3), self.qkv.bias.chunk(3), strict=True)
        query, key, value = (
            self._split(F.linear(torch.cat([first, to_tokens(conv(picture))], dim=1), weight, bias))
            for conv, weight, bias in parts
        )
        if self.fused_attn:
            mixed = F.scaled_dot_product_attention(query, key, value, scale=self.scale)
        else:
            attention = (self.scale * query @ key.transpose(-2, -1)).softmax(dim=-1)
            mixed = self.attn_drop(attention) @ value
        out: Tensor = self.proj_drop(self.proj(mixed.transpose(1, 2).flatten(2)))
        return out

    def _split(self, x: Tensor) -> Tensor:
        """`(B, N, C)` -> `(B, h, N, d)`."""
        return torch.unflatten(x, 2, (self.num_heads, -1)).transpose(1, 2)


class ConvBlock(nn.Module):
    """x + attn(norm1(x)), then x + mlp(norm2(x)). The MLP has 4 C hidden channels and `act`."""

    def __init__(
        self, dim: int, num_heads: int, grid: Grid, prefix: int, act: type[nn.Module]
    ) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = ConvAttention(dim, num_heads, grid, prefix)
        self.mlp = Mlp(dim, 4 * dim, act_layer=act)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class ConvStage(nn.Module):
    """A convolution, a norm over channels, then blocks: `(B, C', H', W')` -> `(B, N, C)`."""

    def __init__(
        self,
        in_chans: int,
        size: StageSize,
        before: Grid,
        class_token: bool,
        act: type[nn.Module] = nn.GELU,
    ) -> None:
        super().__init__()
        self.grid = (_after(before[0], size), _after(before[1], size))
        self.prefix = int(class_token)
        self.embed = nn.Conv2d(in_chans, size.dim, size.kernel, size.stride, size.padding)
        self.norm = nn.LayerNorm(size.dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, size.dim)) if class_token else None
        self.blocks = nn.Sequential(
            *(
                ConvBlock(size.dim, size.num_heads, self.grid, self.prefix, act)
                for _ in range(size.depth)
            )
        )

    def forward(self, picture: Tensor) -> Tensor:
        x = self.norm(to_tokens(self.embed(picture)))
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        out: Tensor = self.blocks(x)
        return out


class CvT(nn.Module):
    """Convolutional vision transformer: images `(B, 3, H, W)` -> scores `(B, num_classes)`.

    Source: CvT, Table 2, and its code. One difference: the code approximates GELU by a sigmoid,
    this network uses GELU itself; `SkaCvT` has the sigmoid.

    Args:
        img_size: side in pixels, or (H, W).
        num_classes, in_chans: as in timm.
        sizes: one entry per stage.
        class_token: whether the last stage has a class token, as in the paper. The classifier
            reads this token. Without it, the classifier reads the mean of the tokens.

    Attributes:
        act: the activation of the MLPs.

    Raises:
        ConfigError: the image is too small.
    """

    act: type[nn.Module] = nn.GELU

    def __init__(
        self,
        img_size: int | Sequence[int] = 224,
        num_classes: int = 1000,
        in_chans: int = 3,
        sizes: Sequence[StageSize] = CVT_13,
        class_token: bool = True,
    ) -> None:
        super().__init__()
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        self.img_size, self.in_chans, self.num_classes = (height, width), in_chans, num_classes
        self.stages, self.grids = nn.ModuleList(), list[Grid]()
        before, channels = (height, width), in_chans
        for size in sizes:
            last = size is sizes[-1]
            stage = ConvStage(channels, size, before, class_token and last, self.act)
            self.stages.append(stage)
            self.grids.append(stage.grid)
            before, channels = stage.grid, size.dim
        self.norm = nn.LayerNorm(channels)
        self.head = nn.Linear(channels, num_classes)
        self.apply(init_linear)
        if self.stages[-1].class_token is not None:
            trunc_normal_(self.stages[-1].class_token, std=STD)

    def get_classifier(self) -> nn.Module:
        """As in timm."""
        return self.head

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for index, stage in enumerate(self.stages):
            x = stage(x if index == 0 else to_picture(x, self.grids[index - 1]))
        x = self.norm(x)
        scores: Tensor = self.head(x[:, 0] if self.stages[-1].prefix else x.mean(dim=1))
        return scores


class SkaCvT(CvT):
    """CvT as SKA's code for small images has it: the activation is x * sigmoid(1.702 x).

    Source: zizhao-hu/SKA, `smallscaleexp/models/cvt.py`, which is CvT's own code. The first stage
    cuts patches by a 7x7 convolution of stride 4, each later one by a 3x3 convolution of stride 2.

    Args:
        img_size: side in pixels, or (H, W).
        num_classes, in_chans, class_token: as of `CvT`.
        embed_dims, depths, num_heads: channels, blocks and heads, one number per stage.

    Raises:
        ConfigError: the image is too small.
        ValueError: the three lists have not the same length, or heads do not divide channels.
    """

    act = QuickGELU

    def __init__(
        self,
        img_size: int | Sequence[int] = 32,
        num_classes: int = 10,
        in_chans: int = 3,
        embed_dims: Sequence[int] = (64, 192, 384),
        depths: Sequence[int] = (1, 2, 10),
        num_heads: Sequence[int] = (1, 3, 6),
        class_token: bool = True,
    ) -> None:
        cuts = [(7, 4, 2)] + [(3, 2, 1)] * (len(embed_dims) - 1)
        stages = zip(embed_dims, depths, num_heads, cuts, strict=True)
        sizes = [StageSize(dim, depth, heads, *cut) for dim, depth, heads, cut in stages]
        for size in sizes:
            if size.dim % size.num_heads:
                raise ValueError(f"{size.num_heads} heads do not divide {size.dim} channels")
        super().__init__(img_size, num_classes, in_chans, sizes, class_token)


def _after(side: int, size: StageSize) -> int:
    """Number of tokens along one side after a stage's embedding."""
    tokens = (side + 2 * size.padding - size.kernel) // size.stride + 1
    if tokens < 1:
        raise ConfigError("too small for the network's stages", address="img_size", value=side)
    return tokens
