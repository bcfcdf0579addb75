"""MetaFormer's separable convolution."""

from __future__ import annotations

from torch import Tensor, nn

from vitnas.nn.layers.activation import StarReLU
from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class SeparableConv(TokenMixer):
    """Linear C -> M, StarReLU, depthwise k x k convolution, Linear M -> C; no biases.

    Source: MobileNetV2's inverted separable convolution as MetaFormer baselines (ConvFormer and
    CAFormer) use it.

    Args:
        dim: channels C.
        hidden: channels M between the two linear layers.
        kernel_size: k, odd.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters 2 C M + M k^2 + 2.
    MACs: ``N * (2 * C * M + M * k**2)``
    Randomness: none after construction.
    """

    def __init__(self, dim: int, hidden: int, kernel_size: int = 7) -> None:
        super().__init__()
        self.expand = nn.Linear(dim, hidden, bias=False)
        self.act = StarReLU()
        self.depthwise = nn.Conv2d(
            hidden, hidden, kernel_size, padding=kernel_size // 2, groups=hidden, bias=False
        )
        self.reduce = nn.Linear(hidden, dim, bias=False)

    @classmethod
    def at(cls, place: Place) -> SeparableConv:
        stage = place.stage_config
        return cls(stage.embed_dim, stage.hidden_channels, stage.kernel)

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        hidden = self.act(self.expand(x))
        out: Tensor = self.reduce(to_tokens(self.depthwise(to_picture(hidden, grid))))
        return out

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return []
