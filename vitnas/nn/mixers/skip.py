"""No block at all."""

from __future__ import annotations

from torch import Tensor

from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class Skip(TokenMixer):
    """x -> x, and so does its block: no norm, no residual, no MLP.

    A stage of it is its downsampling alone, or the stem in the first stage. With `downsample: vgg`
    such stages make a plain CNN: a convolution, then pooling.

    Source: the skip operation of search spaces with a variable number of layers, as in Cai et al.,
    "ProxylessNAS", 2019, section 4.1.

    Shape: `(B, N, C)` -> `(B, N, C)`; no parameters.
    MACs: ``0``
    Randomness: none.
    """

    @classmethod
    def at(cls, place: Place) -> Skip:
        return cls()

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        return x

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return []
