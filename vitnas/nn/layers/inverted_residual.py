"""The layers of MobileNet's inverted residual, of a mixer and of a downsampling layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

torch.fx.wrap("pointwise")  # sizes are unknown while torch.fx traces: a leaf

_FEW = 8192
"""Most pixels of a batch for which a matrix product is faster than the same convolution: twice as
fast at 2,048, and a fifth faster here (on a Xeon with AVX-512)."""


class PointwiseConv(nn.Conv2d):
    """A 1x1 convolution without bias, in training a matrix product where there are few pixels.

    There a call of the convolution's library costs more than the arithmetic.
    """

    def __init__(self, before: int, after: int) -> None:
        super().__init__(before, after, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return pointwise(x, self.weight) if self.training else super().forward(x)


def pointwise(x: Tensor, weight: Tensor) -> Tensor:
    """`(B, C, H, W)` and `(C', C, 1, 1)` -> `(B, C', H, W)`."""
    few = x.shape[0] * x.shape[2] * x.shape[3] <= _FEW
    if not few or x.device.type != "cpu" or not x.is_contiguous(memory_format=torch.channels_last):
        return F.conv2d(x, weight)
    return F.linear(x.permute(0, 2, 3, 1), weight.flatten(1)).permute(0, 3, 1, 2)


class SqueezeExcite(nn.Module):
    """x * sigmoid(W2 act(W1 mean(x))): one gate a channel, of the mean over the picture.

    Source: Hu et al., "Squeeze-and-Excitation Networks", as EfficientNet places it.

    Args:
        channels: M.
        squeezed: s, the channels between the two layers.
        act: a kind of activation.

    Shape: `(B, M, H, W)` -> the same; parameters 2 M s + s + M.
    """

    def __init__(self, channels: int, squeezed: int, act: type[nn.Module]) -> None:
        super().__init__()
        self.reduce = nn.Linear(channels, squeezed)
        self.act = act()
        self.expand = nn.Linear(squeezed, channels)

    def forward(self, picture: Tensor) -> Tensor:
        gates: Tensor = self.expand(self.act(self.reduce(picture.mean((2, 3))))).sigmoid()
        return picture * gates[:, :, None, None]


def inverted_residual(
    before: int,
    hidden: int,
    after: int,
    act: type[nn.Module],
    *,
    kernel: int = 3,
    stride: int = 1,
    squeezed: int = 0,
) -> nn.Sequential:
    """1x1 convolution C -> M, depthwise k x k, squeeze-excitation, 1x1 convolution M -> C'.

    No convolution has a bias. BatchNorm follows each, and can be folded into it; an activation
    follows all but the last. M = C leaves out the first convolution, as in MobileNetV2's first
    block, which makes a depthwise-separable convolution. The residual is the caller's.

    Args:
        before, hidden, after: channels C, M and C'.
        act: a kind of activation.
        kernel, stride: of the depthwise convolution; the kernel is odd.
        squeezed: channels s inside squeeze-excitation; 0 leaves it out.

    Shape: `(B, C, H, W)` -> `(B, C', H / stride, W / stride)`, rounded up.
    """
    layers: list[nn.Module] = []
    if hidden != before:
        layers += [PointwiseConv(before, hidden), nn.BatchNorm2d(hidden), act()]
    depthwise = nn.Conv2d(
        hidden, hidden, kernel, stride, padding=kernel // 2, groups=hidden, bias=False
    )
    layers += [depthwise, nn.BatchNorm2d(hidden), act()]
    if squeezed:
        layers.append(SqueezeExcite(hidden, squeezed, act))
    layers += [PointwiseConv(hidden, after), nn.BatchNorm2d(after)]
    return nn.Sequential(*layers)
