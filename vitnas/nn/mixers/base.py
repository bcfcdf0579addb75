"""What every token mixer is and takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from vitnas.config.model import ModelConfig, StageConfig
from vitnas.nn.layers.tokens import Grid


class Tap(NamedTuple):
    """What an attention block hands on: to broad attention its query, key and value, each
    `(B, h, N, d)`, tokens in their true order, the key of a static-key mixer the same for all B; to
    blocks that use its map again, that map `(B, h, N, N)`."""

    query: Tensor
    key: Tensor
    value: Tensor
    attention: Tensor | None = None


@dataclass(frozen=True)
class Place:
    """Where in the network a mixer stands.

    Attributes:
        config: the whole network.
        stage: index of the stage.
        block: index of the block in the whole network; seeds the fixed permutations.
        reattention: whether this block mixes its maps across heads.
    """

    config: ModelConfig
    stage: int
    block: int = 0
    reattention: bool = False

    @property
    def stage_config(self) -> StageConfig:
        return self.config.stages[self.stage]

    @property
    def grid(self) -> Grid:
        return self.config.grids[self.stage]

    @property
    def num_tokens(self) -> int:
        return self.config.num_tokens(self.stage)


class TokenMixer(nn.Module, ABC):
    """`(B, N, C)` on grid `(H, W)` -> `(B, N, C)`; images never see each other.

    N is H * W, plus one where there is a class token, which comes first. In eval a mixer is
    deterministic and draws no random numbers. Its class docstring states its multiply-adds per
    image and pass as an expression, which the contract test evaluates.
    """

    @classmethod
    @abstractmethod
    def at(cls, place: Place) -> TokenMixer:
        """The mixer that the configuration asks for at `place`."""

    @abstractmethod
    def forward(
        self, x: Tensor, grid: Grid, passed: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        """Mix tokens.

        Args:
            x: tokens `(B, N, C)`.
            grid: (H, W) of the patch tokens.
            passed: index of the pass through the block; chooses the token groups of `mhsa`.
            taps: where given, an attention with query, key and value appends them; it computes
                them anyway. One without takes its map from the last tap.
        """
