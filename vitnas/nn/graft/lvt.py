"""Lite Vision Transformer: a host of broad attention in BViT's Table V; timm does not have it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from timm.layers import DropPath, Mlp, trunc_normal_
from timm.models.pvt_v2 import MlpWithDepthwiseConv
from timm.models.volo import ClassBlock
from torch import Tensor, nn

from vitnas.errors import ConfigError
from vitnas.nn.graft.atrous import AtrousAttention
from vitnas.nn.layers.init import STD, init_linear
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens

_SIDE, _STRIDE = 3, 2  # of the windows of CSA
_AUXILIARY = 0.5  # weight of the tokens' own scores


class LvtSize(NamedTuple):
    """Channels, blocks and heads of a stage; hidden channels of an MLP as a multiple of the
    channels; side of the squares of tokens that become one key and value.

    The first stage has CSA and reads no `reduction`.
    """

    dim: int
    depth: int
    num_heads: int
    mlp_ratio: int
    reduction: int = 1


SIZES = (
    LvtSize(64, 2, 2, 4),
    LvtSize(64, 2, 2, 8, 4),
    LvtSize(160, 2, 5, 4, 2),
    LvtSize(256, 2, 8, 4, 1),
)
"""The one network of the paper."""


class ConvSelfAttention(nn.Module):
    """CSA: attention inside windows of 3x3 tokens, with a convolution's weights as values.

    The windows overlap: their centres are two tokens apart. For window n of tokens x_n1 .. x_n9,
    whose mean over its stride is m_n:

        A_n = softmax(linear(m_n) / sqrt(d)), 9 x 9 for each head of d channels
        y_ni = sum_j A_nij W_j x_nj

    Each W_j is a C x C matrix for one place of the window. The result of a token is the sum of y
    over the windows that hold it, then a projection.

    Source: LVT (Yang et al. 2021), convolutional self-attention, as its code has it.

    Args:
        dim: channels C.
        num_heads: heads h; d = C / h. The W_j give the channels of all heads.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.attn = nn.Linear(dim, num_heads * _SIDE**4)
        self.weight = nn.Parameter(torch.empty(_SIDE**2, dim, dim))
        nn.init.normal_(self.weight, std=math.sqrt(2 / (_SIDE**2 * dim)))
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, grid: Grid) -> Tensor:
        picture = to_picture(x, grid)
        mixed = self.maps(picture) @ self.values(picture)  # (B, n, h, 9, d)
        pieces = mixed.permute(0, 2, 4, 3, 1).flatten(1, 3)
        summed = F.fold(pieces, grid, _SIDE, padding=_SIDE // 2, stride=_STRIDE)
        out: Tensor = self.proj(to_tokens(summed))
        return out

    def maps(self, picture: Tensor) -> Tensor:
        """`(B, C, H, W)` -> the maps of n windows, `(B, n, h, 9, 9)`."""
        means = to_tokens(F.avg_pool2d(picture, _STRIDE, ceil_mode=True))
        logits = self.scale * self.attn(means)
        return torch.unflatten(logits, 2, (self.num_heads, _SIDE**2, _SIDE**2)).softmax(dim=-1)

    def values(self, picture: Tensor) -> Tensor:
        """`(B, C, H, W)` -> the values of n windows, `(B, n, h, 9, d)`."""
        pieces = F.unfold(picture, _SIDE, padding=_SIDE // 2, stride=_STRIDE)  # (B, C * 9, n)
        batch, _, windows = pieces.shape
        places = torch.unflatten(pieces, 1, (-1, _SIDE**2)).permute(2, 0, 3, 1).flatten(1, 2)
        values = torch.unflatten(places @ self.weight, 1, (batch, windows))  # (9, B, n, C)
        return torch.unflatten(values, 3, (self.num_heads, -1)).permute(1, 2, 3, 0, 4)


class CsaBlock(nn.Module):
    """x + attn(norm1(x)), then x + mlp(norm2(x)): a block of the first stage, with CSA.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    def __init__(self, size: LvtSize, grid: Grid, drop_path: float) -> None:
        super().__init__()
        self.grid, self.drop_path = grid, DropPath(drop_path)
        self.norm1, self.norm2 = nn.LayerNorm(size.dim), nn.LayerNorm(size.dim)
        self.attn = ConvSelfAttention(size.dim, size.num_heads)
        self.mlp = Mlp(size.dim, size.mlp_ratio * size.dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path(self.attn(self.norm1(x), self.grid))
        out: Tensor = x + self.drop_path(self.mlp(self.norm2(x)))
        return out


class RasaBlock(nn.Module):
    """x + rasa(norm1(x)), then x + mlp(norm2(x)): a block of the other stages, with RASA.

    RASA runs one attention twice. With h_1 its input and o_t = SiLU(attn(h_t)):

        h_2 = o_1 + h_1, and o_2 is the result

    The MLP has a depthwise 3x3 convolution before its activation, as in PVT v2.

    Source: LVT's recursive atrous self-attention, as its code has it.

    Attributes:
        attention_runs: how often the attention runs.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    attention_runs = 2

    def __init__(self, size: LvtSize, grid: Grid, drop_path: float) -> None:
        super().__init__()
        self.grid, self.drop_path = grid, DropPath(drop_path)
        self.norm1, self.norm2 = nn.LayerNorm(size.dim), nn.LayerNorm(size.dim)
        self.attn = AtrousAttention(size.dim, size.num_heads, size.reduction)
        self.mlp = MlpWithDepthwiseConv(size.dim, size.mlp_ratio * size.dim)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path(self.rasa(self.norm1(x)))
        out: Tensor = x + self.drop_path(self.mlp(self.norm2(x), self.grid))
        return out

    def rasa(self, x: Tensor) -> Tensor:
        """All runs of the attention."""
        out = F.silu(self.attn(x, self.grid))
        for _ in range(self.attention_runs - 1):
            x = x + out
            out = F.silu(self.attn(x, self.grid))
        return out


class LvtStage(nn.Module):
    """A convolution of kernel k and stride s, a norm over channels, then blocks.

    Shape: `(B, C', H', W')` -> `(B, C, H, W)`; H is H' / s, rounded up.
    """

    def __init__(self, embed: nn.Conv2d, blocks: Sequence[nn.Module], dim: int, grid: Grid) -> None:
        super().__init__()
        self.embed, self.norm, self.grid = embed, nn.LayerNorm(dim), grid
        self.blocks = nn.Sequential(*blocks)

    def forward(self, picture: Tensor) -> Tensor:
        tokens = self.blocks(self.norm(to_tokens(self.embed(picture))))
        return to_picture(tokens, self.grid)


class LVT(nn.Module):
    """Lite Vision Transformer: images `(B, in_chans, H, W)` -> scores `(B, num_classes)`.

    A stage with CSA, three with RASA, then two blocks of class attention. The scores are those of
    the class token plus half of the tokens' highest, class by class.

    Source: LVT (Yang et al. 2021) and its code for ImageNet, whose last two blocks and
    scores are VOLO's. It is trained with a label for each token and mixed tokens; here it is
    trained by its scores alone, as timm's VOLO. One difference: MLPs with a convolution start as
    those of timm's PVT v2.

    Args:
        img_size: side in pixels, or (H, W).
        patch_size: stride of the first convolution: 4 as in the paper, or 2 or 1 for small images.
        in_chans, num_classes: as in timm; at least one class.
        drop_path_rate: of the last block, 0 to 1; it grows from 0 in the first. The paper has 0.1.
        sizes: one entry per stage.

    Raises:
        ConfigError: the image is too small for the reductions.
        ValueError: an argument that it does not take.
    """

    def __init__(
        self,
        img_size: int | Sequence[int] = 224,
        patch_size: int = 4,
        in_chans: int = 3,
        num_classes: int = 1000,
        drop_path_rate: float = 0.0,
        sizes: Sequence[LvtSize] = SIZES,
    ) -> None:
        super().__init__()
        if patch_size not in (1, 2, 4):
            raise ValueError(f"patch_size is 1, 2 or 4, not {patch_size}")
        if num_classes < 1:
            raise ValueError("LVT has no form without classes")
        height, width = (img_size, img_size) if isinstance(img_size, int) else img_size
        self.img_size, self.in_chans, self.num_classes = (height, width), in_chans, num_classes
        grids = grids_of((height, width), patch_size, sizes)
        last, total = sizes[-1], sum(size.depth for size in sizes)
        rates = [drop_path_rate * number / max(1, total - 1) for number in range(total)]
        self.stages = nn.ModuleList()
        for index, (size, grid) in enumerate(zip(sizes, grids, strict=True)):
            block = RasaBlock if index else CsaBlock
            blocks = [block(size, grid, rates.pop(0)) for _ in range(size.depth)]
            kernel, stride = (3, 2) if index else (7, patch_size)
            before = sizes[index - 1].dim if index else in_chans
            embed = nn.Conv2d(before, size.dim, kernel, stride, kernel // 2)
            self.stages.append(LvtStage(embed, blocks, size.dim, grid))
        self.class_token = nn.Parameter(torch.zeros(1, 1, last.dim))
        self.class_blocks = nn.Sequential(
            *(ClassBlock(last.dim, last.num_heads, mlp_ratio=last.mlp_ratio) for _ in range(2))
        )
        self.norm = nn.LayerNorm(last.dim)
        self.head, self.aux_head = (nn.Linear(last.dim, num_classes) for _ in range(2))
        self.apply(_init)
        trunc_normal_(self.class_token, std=STD)

    def get_classifier(self) -> tuple[nn.Module, nn.Module]:
        """As in timm: the class token's, and that of all other tokens."""
        return self.head, self.aux_head

    def forward(self, images: Tensor) -> Tensor:
        picture = images
        for stage in self.stages:
            picture = stage(picture)
        tokens = to_tokens(picture)
        class_token = self.class_token.expand(tokens.shape[0], -1, -1)
        x = self.norm(self.class_blocks(torch.cat([class_token, tokens], dim=1)))
        scores: Tensor = self.head(x[:, 0]) + _AUXILIARY * self.aux_head(x[:, 1:]).amax(dim=1)
        return scores


def grids_of(image_hw: Grid, patch_size: int, sizes: Sequence[LvtSize]) -> list[Grid]:
    """The tokens of each stage: (H, W).

    Raises:
        ConfigError: they are fewer than one key and value needs; it names the smallest image.
    """
    strides = [patch_size * 2**index for index in range(len(sizes))]
    grids = [(-(-image_hw[0] // stride), -(-image_hw[1] // stride)) for stride in strides]
    if any(min(grid) < size.reduction for grid, size in zip(grids, sizes, strict=True)):
        pairs = zip(strides, sizes, strict=True)
        least = max(stride * (size.reduction - 1) + 1 for stride, size in pairs)
        rule = "too small for the reductions of LVT's keys and values"
        value = image_hw[0] if image_hw[0] == image_hw[1] else image_hw
        raise ConfigError(rule, address="img_size", value=value, nearest=least)
    return grids


def _init(module: nn.Module) -> None:
    """Linear layers as ViT's, and convolutions normal by their fan out (LVT's code)."""
    init_linear(module)
    if isinstance(module, nn.Conv2d) and module.groups == 1 and not module.weight.is_meta:
        fan_out = module.out_channels * math.prod(module.kernel_size)
        nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
        if module.bias is not None:
            nn.init.zeros_(module.bias)
