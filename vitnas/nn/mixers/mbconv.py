"""MobileNet's inverted residual."""

from __future__ import annotations

from torch import Tensor, nn

from vitnas.config.stage import StageConfig
from vitnas.nn.layers.activation import CONV_ACTIVATIONS
from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


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


class InvertedResidual(TokenMixer):
    """1x1 convolution C -> M, depthwise k x k, squeeze-excitation, 1x1 convolution M -> C.

    A whole block: the residual around it is the block's, no norm stands before it and no MLP after
    it, and it is passed once: two passes would share running statistics that are those of neither.
    No convolution has a bias. BatchNorm follows each, and can be folded into it; an activation
    follows all but the last. M = C leaves out the first convolution, as in MobileNetV2's first
    block: e below is then 1, else 2. Without squeeze-excitation s is 0.

    Source: Sandler et al., "MobileNetV2", Table 1; Howard et al., "MobileNetV3", Figure 4
    (squeeze-excitation, hard swish); Tan and Le, "EfficientNet" (s per channel of the block, SiLU).

    Args:
        stage: embed_dim C, expansion M / C, kernel_size k (odd), se_ratio s / C and conv_act count.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters e C M + M k^2, 2 (e M + C) of the norms and
    2 M s + s + M of squeeze-excitation.
    MACs: ``N * (e * C * M + M * k**2) + 2 * M * s``
    Randomness: none after construction. In training the statistics are the batch's.
    """

    def __init__(self, stage: StageConfig) -> None:
        super().__init__()
        dim, hidden, kernel = stage.embed_dim, stage.hidden_channels, stage.kernel
        act = CONV_ACTIVATIONS[stage.conv_act]
        layers: list[nn.Module] = []
        if hidden != dim:
            layers += [nn.Conv2d(dim, hidden, 1, bias=False), nn.BatchNorm2d(hidden), act()]
        depthwise = nn.Conv2d(
            hidden, hidden, kernel, padding=kernel // 2, groups=hidden, bias=False
        )
        layers += [depthwise, nn.BatchNorm2d(hidden), act()]
        if stage.se_channels:
            layers.append(SqueezeExcite(hidden, stage.se_channels, act))
        layers += [nn.Conv2d(hidden, dim, 1, bias=False), nn.BatchNorm2d(dim)]
        self.layers = nn.Sequential(*layers)

    @classmethod
    def at(cls, place: Place) -> InvertedResidual:
        return cls(place.stage_config)

    def forward(
        self, x: Tensor, grid: Grid, passed: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        return to_tokens(self.layers(to_picture(x, grid)))

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return []
