"""A convolution that makes several channels of each one, and is fast for small pictures."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

torch.fx.wrap("multiplied")  # sizes are unknown while torch.fx traces: a leaf

_FEW = 64
"""Most pixels of a picture for which a matrix product is faster than the same convolution."""


class MultipliedConv(nn.Conv2d):
    """A depthwise convolution with bias and a channel multiplier m: channel c becomes c m to
    c m + m - 1.

    In training, the convolution's library takes two to three times as long for a small picture as
    one product with a matrix for each channel, which maps its pixels to those of the result.

    Args:
        before, after: channels C and m C, with m of 2 or more.
        kernel: odd side k.
        stride: s.

    Shape: `(B, C, H, W)` -> `(B, m C, ceil(H / s), ceil(W / s))`.
    """

    def __init__(self, before: int, after: int, kernel: int = 3, stride: int = 1) -> None:
        super().__init__(before, after, kernel, stride, padding=kernel // 2, groups=before)

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return super().forward(x)
        return multiplied(x, self.weight, self.bias, self.stride[0])


def multiplied(x: Tensor, weight: Tensor, bias: Tensor | None, stride: int) -> Tensor:
    """`(B, C, H, W)` and `(m C, 1, k, k)` -> `(B, m C, ceil(H / stride), ceil(W / stride))`."""
    few, suits = x.shape[2] * x.shape[3] <= _FEW, x.dtype == weight.dtype == torch.float32
    suits = suits and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    if not few or not suits or bias is None:
        return F.conv2d(x, weight, bias, stride, weight.shape[2] // 2, groups=x.shape[1])
    out: Tensor = _ByMatrices.apply(x, weight, bias, stride)
    return out


class _ByMatrices(torch.autograd.Function):
    """The convolution as a product (B, pixels) (pixels, m places) for each channel."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
        channels, height, width = x.shape[1:]
        grid, taps = _taps((height, width), weight.shape[2], stride)
        matrices = torch.mm(weight.flatten(1), taps).view(channels, -1, height * width)
        pixels = x.transpose(0, 1).flatten(2).contiguous()
        found = torch.bmm(pixels, matrices.mT)  # (C, B, m * places)
        found = found.unflatten(2, (-1, grid[0] * grid[1])).permute(1, 3, 0, 2)
        out = found.flatten(2).contiguous().add_(bias)
        ctx.save_for_backward(pixels, matrices, taps)
        ctx.shapes = x.shape[1:], weight.shape
        picture: Tensor = out.unflatten(1, grid).permute(0, 3, 1, 2)
        return picture

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        pixels, matrices, taps = ctx.saved_tensors
        (channels, height, width), of_weight = ctx.shapes
        rows = gradient.permute(0, 2, 3, 1).flatten(1, 2)  # (B, places, m C)
        by_channel = rows.unflatten(2, (channels, -1)).permute(2, 0, 3, 1).contiguous().flatten(2)
        of_matrices = torch.bmm(by_channel.mT, pixels).view(of_weight[0], -1)
        of_pixels = torch.bmm(by_channel, matrices).permute(1, 2, 0).contiguous()
        of_x = of_pixels.unflatten(1, (height, width)).permute(0, 3, 1, 2)
        return of_x, (of_matrices @ taps.mT).view(of_weight), rows.sum((0, 1)), None


@cache
def _taps(sides: tuple[int, int], kernel: int, stride: int) -> tuple[tuple[int, int], Tensor]:
    """The result's grid, and which of the kernel's numbers is between a place and a pixel.

    The second is (kernel^2, places * pixels), with at most a 1 in each column.
    """
    along = [_along(side, kernel, stride) for side in sides]
    taps = torch.einsum("ipy,jqx->ijpqyx", *along)
    grid = along[0].shape[1], along[1].shape[1]
    return grid, taps.reshape(kernel * kernel, -1)


def _along(side: int, kernel: int, stride: int) -> Tensor:
    """As the second of `_taps`, along one side: (kernel, places, pixels)."""
    places, pixels = torch.arange(0, side, stride), torch.arange(side)
    offset = pixels[None, :] - places[:, None] + kernel // 2
    return (offset == torch.arange(kernel)[:, None, None]).float()
