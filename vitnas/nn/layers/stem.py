"""The stem: pixels to the tokens of the first stage."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitnas.config.model import ModelConfig
from vitnas.nn.layers.activation import CReLU
from vitnas.nn.layers.init import fill_with_cosines
from vitnas.nn.layers.norm import build_norm, picture_norm
from vitnas.nn.layers.pooling import build_pooling
from vitnas.nn.layers.tokens import to_tokens


class Stem(nn.Module):
    """`(B, in_chans, H*stride, W*stride)` -> `(B, H*W, C)`.

    Six kinds (`StemConfig.kind`):

    - `patch`: one convolution, kernel = stride, with bias (ViT).
    - `conv`: `convs` convolutions 3x3, each with bias, BN and ReLU; the first log2(stride) of them
      halve the grid by stride 2, or the last `pools` of these by 2x2 pooling behind the ReLU (as
      LeNet and VGG do; `pooling` says which); the others have stride 1. The first has C // 2
      channels when there are several, or all but the last have those of `widths` (SReT, Table 12:
      without pooling, without others of stride 1). With `act: crelu` each convolution has half of
      these filters, and CReLU stands in ReLU's place. With `filters: dct` the first one starts as a
      cosine transform.
    - `metaformer`: one convolution with kernel 2 * stride - 1 and bias, then a norm (CAFormer);
      BatchNorm stands right behind the convolution, as part of `conv`.
    - `deepvit`: 7x7 stride 2, BN, ReLU, 3x3, BN, ReLU without biases at `width` channels, then a
      patch convolution with bias (DeepViT-S and -L, from T2T-ViT's and LV-ViT's code).
    - `bvit`: 7x7 stride 2 from in_chans to in_chans channels, then a patch convolution, both with
      bias and nothing between (BViT's code).
    - `shifted`: patches of five images, which are the image and copies moved by one pixel to each
      side, then a norm over a patch's 5 in_chans stride^2 numbers and a linear layer with bias
      (Lee et al., "Vision Transformer for Small-Size Datasets", in vit-pytorch's form; the paper
      moves diagonally by half a patch).

    Args:
        config: of the whole network; stem, in_chans, norm and the first stage's embed_dim count.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.conv = nn.Sequential(*_LAYERS[config.stem.kind](config))
        self.norm: nn.Module = nn.Identity()
        self.proj: nn.Module = nn.Identity()
        if config.stem.kind == "metaformer" and config.norm != "batchnorm":
            self.norm = build_norm(config.stages[0].embed_dim, config.norm, config.norm_eps)
        elif config.stem.kind == "shifted":
            patch = 5 * config.in_chans * config.stem.stride**2
            self.norm = build_norm(patch, config.norm, config.norm_eps)
            self.proj = nn.Linear(patch, config.stages[0].embed_dim)

    def forward(self, images: Tensor) -> Tensor:
        tokens: Tensor = self.proj(self.norm(to_tokens(self.conv(images))))
        return tokens


class Shifts(nn.Module):
    """`(B, C, H, W)` -> `(B, 5 C, H, W)`: the image, and moved right, left, down and up by a pixel.

    What leaves the image is lost, and zeros come in from the other side.
    """

    def forward(self, images: Tensor) -> Tensor:
        sides = ((1, -1, 0, 0), (-1, 1, 0, 0), (0, 0, 1, -1), (0, 0, -1, 1))
        return torch.cat([images, *(F.pad(images, side) for side in sides)], dim=1)


def _patch(config: ModelConfig) -> list[nn.Module]:
    stride = config.stem.stride
    return [nn.Conv2d(config.in_chans, config.stages[0].embed_dim, stride, stride)]


def _conv(config: ModelConfig) -> list[nn.Module]:
    before = config.in_chans
    layers: list[nn.Module] = []
    for index, after in enumerate(config.stem.conv_widths(config.stages[0].embed_dim)):
        count = config.stem.num_filters(after)
        conv = nn.Conv2d(before, count, 3, config.stem.stride_of(index), padding=1)
        if index == 0 and config.stem.filters == "dct":
            fill_with_cosines(conv.weight)
        act = CReLU(after) if config.stem.act == "crelu" else nn.ReLU()
        layers += [conv, picture_norm(count), act]
        if config.stem.is_pooled(index):
            layers.append(build_pooling(after, config.pooling))
        before = after
    return layers


def _metaformer(config: ModelConfig) -> list[nn.Module]:
    stride, dim = config.stem.stride, config.stages[0].embed_dim
    conv = nn.Conv2d(config.in_chans, dim, 2 * stride - 1, stride, padding=stride // 2)
    folded = config.norm == "batchnorm"
    return [conv, nn.BatchNorm2d(dim, config.norm_eps)] if folded else [conv]


def _deepvit(config: ModelConfig) -> list[nn.Module]:
    width, patch = config.stem.width, config.stem.stride // 2
    return [
        nn.Conv2d(config.in_chans, width, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, 1, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, config.stages[0].embed_dim, patch, patch),
    ]


def _bvit(config: ModelConfig) -> list[nn.Module]:
    patch = config.stem.stride // 2
    return [
        nn.Conv2d(config.in_chans, config.in_chans, 7, 2, padding=3),
        nn.Conv2d(config.in_chans, config.stages[0].embed_dim, patch, patch),
    ]


def _shifted(config: ModelConfig) -> list[nn.Module]:
    return [Shifts(), nn.PixelUnshuffle(config.stem.stride)]


_LAYERS = {
    "patch": _patch,
    "conv": _conv,
    "metaformer": _metaformer,
    "deepvit": _deepvit,
    "bvit": _bvit,
    "shifted": _shifted,
}
