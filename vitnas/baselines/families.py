"""The families of reference networks, and how to build a member.

Each is scaled by its width alone, and takes small images: `Grid` says how a network comes down to
a last grid of 4 to 8 positions a side. What a family is made of is timm's wherever timm has it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, cast

from timm.models.metaformer import (
    Attention,
    GroupNorm1NoBias,
    LayerNorm2dNoBias,
    LayerNormNoBias,
    MetaFormer,
    Pooling,
    SepConv,
)
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from vitnas.baselines.stages import Grid, convnext, mobilenet, resnet
from vitnas.config.baseline import Baseline
from vitnas.errors import ConfigError, nearest_name

_LEAST_CONVS = 2
_Builder = Callable[[Baseline], nn.Module]


class _Family(NamedTuple):
    """One way to write a network.

    Attributes:
        build: a member from fresh weights.
        source: where it comes from, for tables and readers.
        least_width: the smallest width that can learn.
    """

    build: _Builder
    source: str
    least_width: int = 2


def build_baseline(baseline: Baseline) -> nn.Module:
    """The network with fresh weights from torch's global generator: (B, C, H, W) -> (B, classes).

    It says its `image_hw`, `in_chans` and `num_classes`, as our networks do.

    Raises:
        ConfigError: there is no such family.
    """
    if baseline.family not in FAMILIES:
        rule = f"no such family; known are {', '.join(FAMILIES)}"
        nearest = nearest_name(baseline.family, FAMILIES)
        raise ConfigError(rule, address="family", value=baseline.family, nearest=nearest)
    model: Any = FAMILIES[baseline.family].build(baseline)
    model.image_hw, model.in_chans = baseline.image_hw, baseline.in_chans
    model.num_classes = baseline.num_classes
    built: nn.Module = model
    return built


def _vgg(baseline: Baseline) -> nn.Module:
    """What tutorials write: 3x3 convolutions with BatchNorm and ReLU, 2x2 max pooling behind each
    while the grid has more than four positions a side, a linear layer that sees every position."""
    height, width = baseline.image_hw
    pooled = Grid(min(height, width), coarsest=4).total_halvings
    layers, before = list[nn.Module](), baseline.in_chans
    for index in range(max(_LEAST_CONVS, pooled)):
        after = baseline.width * min(2**index, 8)  # VGG's last widths are eight times its first
        layers += [_conv(before, after, 3), *[nn.MaxPool2d(2)] * (index < pooled)]
        before = after
    places = (height >> pooled) * (width >> pooled)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before * places, baseline.num_classes))


def _depthwise_cnn(baseline: Baseline) -> nn.Module:
    """What anybody writes first: a 3x3 stem, six depthwise-separable convolutions, BatchNorm."""
    widths = [baseline.width * factor for factor in (1, 2, 2, 4, 4, 4, 4)]
    grid = Grid(min(baseline.image_hw), coarsest=8)
    halved = {1, 3, *(5, 0, 2, 4)[: max(0, grid.halvings - 2)]}
    layers = [_conv(baseline.in_chans, widths[0], 3, grid.stem_stride)]
    for index, (before, after) in enumerate(pairwise(widths)):
        stride = 1 + (index in halved)
        layers += [_conv(before, before, 3, stride, groups=before), _conv(before, after, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], baseline.num_classes)]
    return nn.Sequential(*layers, *head)


def _conv(before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(),
    )


def _vit(baseline: Baseline) -> nn.Module:
    """Six blocks of three heads (DeiT-Tiny's number) of `width` channels, at most 8 x 8 patches
    from small images, mean pooling."""
    side = min(baseline.image_hw)
    model: nn.Module = VisionTransformer(
        img_size=baseline.image_hw,
        patch_size=min(16, max(2, side // 8)) if side > 1 else 1,
        in_chans=baseline.in_chans,
        num_classes=baseline.num_classes,
        embed_dim=3 * baseline.width,
        depth=6,
        num_heads=3,
        class_token=False,
        global_pool="avg",
    )
    return model


def _poolformer(baseline: Baseline) -> nn.Module:
    """PoolFormerV2 with two blocks a stage."""
    return _metaformer(baseline, lambda grid: [(Pooling, GroupNorm1NoBias)] * grid.num_stages)


def _caformer(baseline: Baseline) -> nn.Module:
    """CAFormer with two blocks a stage: separable convolutions first, attention in the later half.
    `width` channels in each of its heads; the classifier is linear."""

    def stages(grid: Grid) -> list[tuple[type[nn.Module], type[nn.Module]]]:
        first = grid.num_stages // 2
        later = grid.num_stages - first
        return [(SepConv, LayerNorm2dNoBias)] * first + [(Attention, LayerNormNoBias)] * later

    return _metaformer(baseline, stages, head_dim=baseline.width)


def _metaformer(
    baseline: Baseline,
    stages: Callable[[Grid], list[tuple[type[nn.Module], type[nn.Module]]]],
    **options: int,
) -> nn.Module:
    """timm's MetaFormer with a stem for small images.

    Args:
        stages: token mixer and norm of each stage.
        options: of the mixers.
    """
    grid = Grid(min(baseline.image_hw))
    mixers, norms = zip(*stages(grid), strict=True)
    model: Any = MetaFormer(
        baseline.in_chans,
        baseline.num_classes,
        depths=(2,) * grid.num_stages,
        dims=tuple(grid.widths(baseline.width)),
        token_mixers=list(mixers),
        norm_layers=list(norms),
        res_scale_init_values=[None] * (grid.num_stages - 2) + [1.0] * min(2, grid.num_stages),
        use_mlp_head=False,
        **options,
    )
    stem = grid.stem(baseline.in_chans, baseline.width)
    nn.init.trunc_normal_(stem.weight, std=0.02)
    model.stem.conv = stem
    return cast(nn.Module, model)


# A LayerNorm over two channels gives 1 and -1 in the order of their sizes, so no gradient goes
# through it.
_NORMED = 3

FAMILIES: dict[str, _Family] = {
    "vgg": _Family(_vgg, "3x3 convolutions, BatchNorm, 2x2 max pooling behind each"),
    "dwcnn": _Family(_depthwise_cnn, "3x3 stem, six depthwise-separable convolutions, BatchNorm"),
    "mobilenet": _Family(mobilenet, "MobileNetV3's blocks: timm's InvertedResidual, expansion 4"),
    "caformer": _Family(_caformer, "timm's MetaFormer: SepConv, then Attention", _NORMED),
    "convnext": _Family(convnext, "timm's ConvNeXtStage without layer scale", _NORMED),
    "resnet": _Family(resnet, "timm's BasicBlock, two a stage as in ResNet-18"),
    "poolformer": _Family(_poolformer, "timm's MetaFormer: Pooling, as PoolFormerV2", _NORMED),
    "vit": _Family(_vit, "timm's VisionTransformer: 6 blocks, 3 heads, mean pooling"),
}
"""By name, in the order in which a small search takes them."""
