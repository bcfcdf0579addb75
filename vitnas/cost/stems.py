"""What a stem costs, from the configuration alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from vitnas.config.model import ModelConfig
from vitnas.cost.norms import BATCH_NORM, norm_cost


class StemCost(NamedTuple):
    """FLOPs for one image and parameters: of the convolutions, and of the norms.

    A linear layer counts as the convolution that does the same.
    """

    flops: int
    params: int
    norm_flops: int
    norm_params: int


def stem_cost(config: ModelConfig) -> StemCost:
    """The cost of the stem, without class token and positions."""
    stem, (height, width) = config.stem, config.image_hw
    flops = params = elements = channels = 0  # of the convolutions, and what their batch norms see
    for kernel, stride, before, after, bias, normed, pooled, blurred in _STEMS[stem.kind](config):
        height, width = height // stride, width // stride
        weights = kernel * kernel * before * after
        flops += weights * height * width
        params += weights + bias * after
        elements += normed * after * height * width
        channels += normed * after
        height, width = height // pooled, width // pooled
        flops += BLUR * blurred * height * width
    norm = BATCH_NORM * elements, 2 * channels
    if stem.kind == "metaformer":
        norm = norm_cost(config.norm, config.stages[0].embed_dim, height * width)
    elif stem.kind == "shifted":
        norm = norm_cost(config.norm, 5 * config.in_chans * stem.stride**2, height * width)
    return StemCost(flops, params, *norm)


BLUR = 9
"""FLOPs of `max_blur` pooling for each channel at each place behind it: those of its filter."""


class _Conv(NamedTuple):
    """A convolution, and the pooling behind it: its side (1: none), and channels that it blurs."""

    kernel: int
    stride: int
    before: int
    filters: int
    bias: bool = True
    normed: bool = False
    pooled: int = 1
    blurred: int = 0


def _patch(config: ModelConfig) -> Iterator[_Conv]:
    stride = config.stem.stride
    yield _Conv(stride, stride, config.in_chans, config.stages[0].embed_dim)


def _shifted(config: ModelConfig) -> Iterator[_Conv]:
    stride = config.stem.stride
    yield _Conv(stride, stride, 5 * config.in_chans, config.stages[0].embed_dim)


def _conv(config: ModelConfig) -> Iterator[_Conv]:
    before = config.in_chans
    for index, after in enumerate(config.stem.conv_widths(config.stages[0].embed_dim)):
        pooled = 2 if config.stem.is_pooled(index) else 1
        filters = config.stem.num_filters(after)
        blurred = after if pooled > 1 and config.pooling == "max_blur" else 0
        yield _Conv(3, config.stem.stride_of(index), before, filters, True, True, pooled, blurred)
        before = after


def _metaformer(config: ModelConfig) -> Iterator[_Conv]:
    stride = config.stem.stride
    yield _Conv(2 * stride - 1, stride, config.in_chans, config.stages[0].embed_dim)


def _deepvit(config: ModelConfig) -> Iterator[_Conv]:
    width, patch = config.stem.width, config.stem.stride // 2
    yield _Conv(7, 2, config.in_chans, width, bias=False, normed=True)
    yield _Conv(3, 1, width, width, bias=False, normed=True)
    yield _Conv(patch, patch, width, config.stages[0].embed_dim)


def _bvit(config: ModelConfig) -> Iterator[_Conv]:
    patch = config.stem.stride // 2
    yield _Conv(7, 2, config.in_chans, config.in_chans)
    yield _Conv(patch, patch, config.in_chans, config.stages[0].embed_dim)


_STEMS: dict[str, Callable[[ModelConfig], Iterator[_Conv]]] = {
    "patch": _patch,
    "conv": _conv,
    "metaformer": _metaformer,
    "deepvit": _deepvit,
    "bvit": _bvit,
    "shifted": _shifted,
}
