"""No mixing at all, as a control."""

from __future__ import annotations

from torch import Tensor

from vitnas.nn.layers.resizing import Change, TokenLayout
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class Identity(TokenMixer):
    """x -> x: this block mixes no tokens.

    Source: MetaFormer baselines (IdentityFormer), where the mixer is the identity mapping and not
    zero: the block's residual adds the normalised token to the token.

    Shape: `(B, N, C)` -> `(B, N, C)`; no parameters.
    MACs: ``0``
    Randomness: none.
    """

    @classmethod
    def at(cls, place: Place) -> Identity:
        return cls()

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        return x

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        return []
