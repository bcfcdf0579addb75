"""The layers of MobileNet's inverted residual, of a mixer and of a downsampling layer."""

from __future__ import annotations

from torch import Tensor, nn


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
        layers += [nn.Conv2d(before, hidden, 1, bias=False), nn.BatchNorm2d(hidden), act()]
    depthwise = nn.Conv2d(
        hidden, hidden, kernel, stride, padding=kernel // 2, groups=hidden, bias=False
    )
    layers += [depthwise, nn.BatchNorm2d(hidden), act()]
    if squeezed:
        layers.append(SqueezeExcite(hidden, squeezed, act))
    layers += [nn.Conv2d(hidden, after, 1, bias=False), nn.BatchNorm2d(after)]
    return nn.Sequential(*layers)
