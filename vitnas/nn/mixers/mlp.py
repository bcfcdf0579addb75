"""MLP-Mixer's token mixing."""

from __future__ import annotations

from torch import Tensor, nn

from vitnas.nn.layers.resizing import Change, TokenLayout, resize_tokens
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.base import Place, Tap, TokenMixer


class TokenMlp(TokenMixer):
    """W2 GELU(W1 x) over the token axis, the same for every channel.

    Source: Tolstikhin et al., "MLP-Mixer"; SReT, Eq. 7, first line. The weights are bound to one
    number of tokens.

    Args:
        num_tokens: N.
        hidden_tokens: S.

    Shape: `(B, N, C)` -> `(B, N, C)`; parameters 2 N S + S + N.
    MACs: ``2 * N * S * C``
    Randomness: none after construction.
    """

    def __init__(self, num_tokens: int, hidden_tokens: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(num_tokens, hidden_tokens)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_tokens, num_tokens)

    @classmethod
    def at(cls, place: Place) -> TokenMlp:
        return cls(place.num_tokens, place.stage_config.hidden_tokens)

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        mixed: Tensor = self.fc2(self.act(self.fc1(x.transpose(1, 2))))
        return mixed.transpose(1, 2)

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """The first layer sums over tokens, the second gives one row to each."""
        first, second = self.fc1, self.fc2
        weight = resize_tokens(first.weight, 1, old, new)
        weight[:, new.prefix :] *= (old.tokens - old.prefix) / (new.tokens - new.prefix)
        return [
            Change(first, "weight", weight),
            Change(first, "in_features", new.tokens),
            Change(second, "weight", resize_tokens(second.weight, 0, old, new)),
            Change(second, "bias", resize_tokens(second.bias, 0, old, new)),
            Change(second, "out_features", new.tokens),
        ]
