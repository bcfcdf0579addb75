"""PoolFormer's average pooling."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class Pool(TokenMixer):
    """Mean over the k x k neighbours inside the picture, minus the token itself.

    Source: Yu et al., "MetaFormer Is Actually What You Need for Vision" (PoolFormer), Eq. 4. The
    token is subtracted because the block's residual adds it again.

    Args:
        kernel_size: k, odd; stride 1.

    Shape: `(B, N, C)` -> `(B, N, C)`; no parameters.
    MACs: ``0``
    Randomness: none.
    """

    def __init__(self, kernel_size: int = 3) -> None:
        super().__init__()
        self.kernel_size = kernel_size

    @classmethod
    def at(cls, place: Place) -> Pool:
        return cls(place.stage_config.kernel)

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        pooled = F.avg_pool2d(
            to_picture(x, grid),
            self.kernel_size,
            stride=1,
            padding=self.kernel_size // 2,
            count_include_pad=False,
        )
        return to_tokens(pooled) - x

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return []
