"""Reference networks of stages: a stem, two of timm's blocks a stage, a linear head.

timm's ResNet, ConvNeXt and MobileNetV3 have four stages and more and a stem of stride 2 or 4,
which leaves nothing of 8 x 8 pixels. So their blocks are stacked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from timm.layers import LayerNorm2d
from timm.models._efficientnet_blocks import InvertedResidual, SqueezeExcite
from timm.models.convnext import ConvNeXtStage
from timm.models.resnet import BasicBlock
from torch import nn

from vitnas.config.baseline import Baseline

_DEPTH = 2  # blocks a stage


@dataclass(frozen=True)
class Grid:
    """How a network comes down from an image to its last grid.

    Attributes:
        side: the shorter one of the image, in pixels.
        coarsest: largest side of the last grid.
    """

    side: int
    coarsest: int = 7

    @property
    def stem_stride(self) -> int:
        """1 below 16 pixels, 2 below 64, then 4."""
        return 1 if self.side < 16 else 2 if self.side < 64 else 4

    @property
    def halvings(self) -> int:
        """How often the grid is halved after the stem."""
        grid, count = -(-self.side // self.stem_stride), 0
        while grid > self.coarsest:
            grid, count = -(-grid // 2), count + 1
        return count

    @property
    def total_halvings(self) -> int:
        """How often the grid is halved, the stem's stride counted."""
        return self.stem_stride.bit_length() - 1 + self.halvings

    @property
    def num_stages(self) -> int:
        return 1 + self.halvings

    def widths(self, first: int) -> list[int]:
        """Channels of each stage: they double."""
        return [first << index for index in range(self.num_stages)]

    def stem(self, before: int, after: int, bias: bool = True) -> nn.Conv2d:
        """A 3x3 convolution, or 7x7 where its stride is 4."""
        kernel = 7 if self.stem_stride == 4 else 3
        return nn.Conv2d(before, after, kernel, self.stem_stride, kernel // 2, bias=bias)


def resnet(baseline: Baseline) -> nn.Module:
    """Two basic blocks a stage; a stem with BatchNorm and no pooling, as He et al. on CIFAR."""

    def stage(before: int, after: int, stride: int) -> Iterator[nn.Module]:
        shortcut = None
        if stride > 1 or before != after:
            shortcut = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )
        yield BasicBlock(before, after, stride, shortcut)
        yield from (BasicBlock(after, after) for _ in range(_DEPTH - 1))

    return _stack(baseline, partial(_normed_stem, act=nn.ReLU), stage, nn.Identity)


def mobilenet(baseline: Baseline) -> nn.Module:
    """Two inverted residuals a stage: expansion 4, 3x3, squeeze and excitation, hard swish."""
    squeeze = partial(SqueezeExcite, gate_layer=nn.Hardsigmoid, rd_ratio=0.25)

    def stage(before: int, after: int, stride: int) -> Iterator[nn.Module]:
        for index in range(_DEPTH):
            yield InvertedResidual(
                after if index else before,
                after,
                stride=1 if index else stride,
                exp_ratio=4.0,
                act_layer=nn.Hardswish,
                se_layer=squeeze,
            )

    return _stack(baseline, partial(_normed_stem, act=nn.Hardswish), stage, nn.Identity)


def convnext(baseline: Baseline) -> nn.Module:
    """Two ConvNeXt blocks a stage; without layer scale, whose start at 1e-6 a short training does
    not leave."""

    def stage(before: int, after: int, stride: int) -> Iterator[nn.Module]:
        norms = {"norm_layer": LayerNorm2d, "norm_layer_cl": nn.LayerNorm}
        yield ConvNeXtStage(before, after, stride=stride, depth=_DEPTH, ls_init_value=None, **norms)

    def stem(grid: Grid, before: int, after: int) -> nn.Module:
        return nn.Sequential(grid.stem(before, after), LayerNorm2d(after))

    return _stack(baseline, stem, stage, LayerNorm2d)


def _stack(
    baseline: Baseline,
    stem: Callable[[Grid, int, int], nn.Module],
    stage: Callable[[int, int, int], Iterator[nn.Module]],
    last_norm: Callable[[int], nn.Module],
) -> nn.Module:
    grid = Grid(min(baseline.image_hw))
    widths = grid.widths(baseline.width)
    layers = [stem(grid, baseline.in_chans, widths[0]), *stage(widths[0], widths[0], 1)]
    for before, after in pairwise(widths):
        layers += stage(before, after, 2)
    head = [last_norm(widths[-1]), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, *head, nn.Linear(widths[-1], baseline.num_classes))


def _normed_stem(grid: Grid, before: int, after: int, act: type[nn.Module]) -> nn.Module:
    return nn.Sequential(grid.stem(before, after, bias=False), nn.BatchNorm2d(after), act())
