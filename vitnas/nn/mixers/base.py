"""What every token mixer is and takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from vitnas.config.mixers import MixerFacts
from vitnas.config.model import ModelConfig
from vitnas.config.stage import StageConfig
from vitnas.cost.operators import count_operators
from vitnas.errors import VitnasError
from vitnas.nn.layers.resizing import Change, TokenLayout
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

    @property
    def options(self) -> Any:
        """The mixer's own fields with their defaults: an object of its `facts.options`."""
        options = self.stage_config.facts.options
        assert options is not None
        return options.model_validate(self.stage_config.mixer_options)


class TokenMixer(nn.Module, ABC):
    """`(B, N, C)` on grid `(H, W)` -> `(B, N, C)`; images never see each other.

    N is H * W, plus one where there is a class token, which comes first. In eval a mixer is
    deterministic and draws no random numbers. Its class docstring states its multiply-adds per
    image and pass as an expression, which the contract test evaluates.

    Attributes:
        facts: of another package's mixer; those of vitnas's stand in `config/mixers.py`.
    """

    facts: ClassVar[MixerFacts] = MixerFacts()

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

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """What changes in the mixer itself for images of another size; parts of it say their own.

        Raises:
            VitnasError: nobody has said how it is resized; so by default.
        """
        raise VitnasError(f"{type(self).__name__} cannot be resized")

    @classmethod
    def counted(cls, config: ModelConfig, stage: int, tokens: int) -> tuple[int, list[int]]:
        """Parameters, and FLOPs of each pass, of a mixer without a closed form.

        The mixer is built on its own and counted; each form of it once a process.

        Raises:
            UncountedOperatorError: it has an operator that nobody has said how to count.
        """
        key = cls, _what_a_mixer_reads(config, stage)
        if key not in _COUNTED:
            _COUNTED[key] = _count(cls, Place(config, stage))
        return _COUNTED[key]


class OnPicture(nn.Module):
    """A mixer that takes its tokens as a picture `(B, C, 1, N)`, for the counter."""

    def __init__(self, mixer: TokenMixer, place: Place, passed: int) -> None:
        super().__init__()
        self.mixer, self.grid, self.passed = mixer, place.grid, passed

    def forward(self, picture: Tensor) -> Tensor:
        out: Tensor = self.mixer(picture.flatten(2).transpose(1, 2), self.grid, self.passed)
        return out


_COUNTED: dict[tuple[type[TokenMixer], str], tuple[int, list[int]]] = {}
_OF_BLOCKS = {"depth", "mlp_ratio", "nll_ratio", "residual"}
_OF_NETWORKS = {"name", "num_classes", "stages", "head", "broad", "reattention_blocks"}


def _what_a_mixer_reads(config: ModelConfig, stage: int) -> str:
    """Text that is equal for two places with the same mixer."""
    inside = config.stages[stage].model_dump_json(exclude=_OF_BLOCKS)
    return f"{config.grids[stage]} {inside} {config.model_dump_json(exclude=_OF_NETWORKS)}"


def _count(kind: type[TokenMixer], place: Place) -> tuple[int, list[int]]:
    with torch.random.fork_rng(devices=[]):
        mixer = kind.at(place)
    shape = (place.stage_config.embed_dim, 1, place.num_tokens)
    flops = [
        sum(count_operators(OnPicture(mixer, place, passed), shape).values())
        for passed in range(place.stage_config.passes)
    ]
    return sum(parameter.numel() for parameter in mixer.parameters()), flops
