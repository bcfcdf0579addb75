"""Between two stages: half the grid, other channels."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from vitnas.config.parts import Downsampling, Norm, Pooling
from vitnas.config.rules import halved
from vitnas.nn.layers.activation import CReLU
from vitnas.nn.layers.depthwise import MultipliedConv
from vitnas.nn.layers.inverted_residual import PointwiseConv, inverted_residual
from vitnas.nn.layers.norm import EPS, build_norm
from vitnas.nn.layers.pooling import build_pooling
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens


class Downsample(nn.Module):
    """`(B, N, C)` on grid (H, W) -> `(B, N', C')` on half the grid; N = H*W and a class token.

    - `conv`: 3x3, stride 2, bias, gcd(C, C') groups. For doubled widths these are SReT's C groups
      (Appendix, Table 12); other widths take as many groups as fit.
    - `metaformer`: a norm, then a full 3x3 convolution of stride 2 with bias (CAFormer).
    - `cvt`: a full 3x3 convolution of stride 2 with bias, then a norm (CvT, Section 3.1).
    - `patch`: a 2x2 convolution of stride 2 with bias.
    - `separable`: a depthwise 3x3 convolution of stride 2, BN, ReLU, a 1x1 convolution and BN, both
      without bias (MobileNetV2's depthwise-separable convolution, with its linear end).
    - `mbconv`: an inverted residual of stride 2, with hard swish: a 1x1 convolution to M channels,
      the depthwise one of stride 2 on these, squeeze-excitation, a 1x1 convolution to C'. It has no
      skip (MobileNetV3, EfficientNet). C = M leaves out the first convolution.
    - `maxpool`: 2x2 pooling, then a 1x1 convolution without bias and BN.
    - `vgg`: a full 3x3 convolution without bias, BN, ReLU, then 2x2 pooling (VGG, with BN).
    - `crelu`: the same with half of the filters, and CReLU in ReLU's place.

    A class token has a linear layer C -> C' of its own, without a norm (PiT, on whose code SReT's
    stands).

    Args:
        before, after: channels C and C'.
        kind: as above.
        norm, norm_eps: kind and epsilon of the norm, for `metaformer` and `cvt`.
        hidden, squeezed: channels M, and those of squeeze-excitation or 0, for `mbconv`.
        prefix: class tokens before the patch tokens.
        pooling: which one `maxpool`, `vgg` and `crelu` have.
    """

    def __init__(
        self,
        before: int,
        after: int,
        kind: Downsampling,
        norm: Norm = "layernorm",
        norm_eps: float = EPS,
        hidden: int = 0,
        squeezed: int = 0,
        prefix: int = 0,
        pooling: Pooling = "max",
    ) -> None:
        super().__init__()
        self.prefix = prefix
        self.token = nn.Linear(before, after) if prefix else nn.Identity()
        self.norm: nn.Module = nn.Identity()
        self.norm_after: nn.Module = nn.Identity()
        if kind == "metaformer":
            self.norm = build_norm(before, norm, norm_eps)
        if kind == "cvt":
            self.norm_after = build_norm(after, norm, norm_eps)
        self.conv: nn.Module
        if kind == "patch":
            self.conv = nn.Conv2d(before, after, 2, 2)
        elif kind == "maxpool":
            layers = build_pooling(before, pooling), PointwiseConv(before, after)
            self.conv = nn.Sequential(*layers, nn.BatchNorm2d(after))
        elif kind in ("vgg", "crelu"):
            count, act = (halved(after), CReLU(after)) if kind == "crelu" else (after, nn.ReLU())
            conv = nn.Conv2d(before, count, 3, padding=1, bias=False)
            pool = build_pooling(after, pooling)
            self.conv = nn.Sequential(conv, nn.BatchNorm2d(count), act, pool)
        elif kind == "separable":
            self.conv = inverted_residual(before, before, after, nn.ReLU, stride=2)
        elif kind == "mbconv":
            self.conv = inverted_residual(
                before, hidden, after, nn.Hardswish, stride=2, squeezed=squeezed
            )
        elif kind == "conv" and before < after and after % before == 0:
            self.conv = MultipliedConv(before, after, stride=2)
        else:
            groups = math.gcd(before, after) if kind == "conv" else 1
            self.conv = nn.Conv2d(before, after, 3, 2, padding=1, groups=groups)

    def forward(self, x: Tensor, grid: Grid) -> Tensor:
        patches = self.norm(x[:, self.prefix :])
        out = self.norm_after(to_tokens(self.conv(to_picture(patches, grid))))
        return torch.cat([self.token(x[:, : self.prefix]), out], dim=1) if self.prefix else out
