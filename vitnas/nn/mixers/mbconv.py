"""MobileNet's inverted residual."""

from __future__ import annotations

from torch import Tensor

from vitnas.config.stage import StageConfig
from vitnas.nn.layers.activation import CONV_ACTIVATIONS
from vitnas.nn.layers.inverted_residual import inverted_residual
from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class InvertedResidual(TokenMixer):
    """1x1 convolution C -> M, depthwise k x k, squeeze-excitation, 1x1 convolution M -> C.

    A whole block: the residual around it is the block's, no norm stands before it and no MLP after
    it, and it is passed once: two passes would share running statistics that are those of neither.
    M = C leaves out the first convolution: e below is then 1, else 2. Without squeeze-excitation s
    is 0. See `inverted_residual` for the layers.

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
        self.layers = inverted_residual(
            stage.embed_dim,
            stage.hidden_channels,
            stage.embed_dim,
            CONV_ACTIVATIONS[stage.conv_act],
            kernel=stage.kernel,
            squeezed=stage.se_channels,
        )

    @classmethod
    def at(cls, place: Place) -> InvertedResidual:
        return cls(place.stage_config)

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        return to_tokens(self.layers(to_picture(x, grid)))

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return []
