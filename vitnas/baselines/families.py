"""The families of reference networks, and how to build a member."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from torch import nn

from vitnas.baselines.baseline import Baseline


def build_baseline(baseline: Baseline) -> nn.Module:
    """The network with fresh weights from torch's global generator: (B, C, H, W) -> (B, classes).

    Raises:
        KeyError: there is no such family.
    """
    return FAMILIES[baseline.family](baseline)


def _depthwise_cnn(baseline: Baseline) -> nn.Module:
    """What anybody writes first: a 3x3 stem, six depthwise-separable convolutions, BatchNorm."""
    widths = [baseline.width * factor for factor in (1, 2, 2, 4, 4, 4, 4)]
    strides = (1, 2, 1, 2, 1, 1)
    first = 1 if min(baseline.image_hw) < 16 else 2
    layers = [_conv(baseline.in_chans, widths[0], 3, first)]
    for (before, after), stride in zip(pairwise(widths), strides, strict=True):
        layers += [_conv(before, before, 3, stride, groups=before), _conv(before, after, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], baseline.num_classes)]
    return nn.Sequential(*layers, *head)


def _conv(before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(),
    )


FAMILIES: dict[str, Callable[[Baseline], nn.Module]] = {"dwcnn": _depthwise_cnn}
"""By name; each builds a member of its family."""
