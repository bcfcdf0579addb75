"""The interface of token mixers."""

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
    """What an attention block shares with broad attention and with later blocks.

    Attributes:
        query, key, value: for broad attention, each `(B, h, N, d)` with tokens in true order. The
            key of a static-key mixer is the same for all B images.
        attention: the map `(B, h, N, N)` for blocks that use it again, or None.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    attention: Tensor | None = None


@dataclass(frozen=True)
class Place:
    """The place of a mixer in the network.

    Attributes:
        config: the whole network.
        stage: index of the stage.
        block: index of the block in the whole network. It seeds the fixed permutations.
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
    def num_keys(self) -> int:
        return self.config.num_keys(self.stage)

    @property
    def options(self) -> Any:
        """The mixer's own fields with their defaults: an object of its `facts.options`."""
        options = self.stage_config.facts.options
        assert options is not None
        return options.model_validate(self.stage_config.mixer_options)


class TokenMixer(nn.Module, ABC):
    """`(B, N, C)` on grid `(H, W)` -> `(B, N, C)`. Images of a batch do not affect each other.

    N is H * W, plus one for a class token, which comes first. In eval a mixer is deterministic and
    draws no random numbers. The class docstring states its multiply-adds per image and pass as an
    expression, which the contract test evaluates.

    Attributes:
        facts: the facts of another package's mixer. Those of vitnas's mixers are in
            `config/mixers.py`.
    """

    facts: ClassVar[MixerFacts] = MixerFacts()

    @classmethod
    @abstractmethod
    def at(cls, place: Place) -> TokenMixer:
        """The mixer at `place`, as the configuration describes it."""

    @abstractmethod
    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        """Mix tokens.

        Args:
            x: tokens `(B, N, C)`.
            grid: (H, W) of the patch tokens.
            pass_index: index of the pass through the block. It chooses the token groups of `mhsa`.
            taps: None, or a list. An attention appends its query, key and value to it. An attention
                without a query takes its map from the last entry.
        """

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """The changes of the mixer itself for images of another size. Its parts have their own.

        Raises:
            VitnasError: the class does not define it.
        """
        raise VitnasError(f"{type(self).__name__} cannot be resized")

    @classmethod
    def counted(cls, config: ModelConfig, stage: int, tokens: int) -> tuple[int, list[int]]:
        """Parameters, and FLOPs of each pass, of a mixer without a closed form.

        The mixer is built alone and counted. Each form of it is counted once per process.

        Raises:
            UncountedOperatorError: it has an operator without a rule for its FLOPs.
        """
        key = cls, _what_a_mixer_reads(config, stage)
        if key not in _COUNTED:
            _COUNTED[key] = _count(cls, Place(config, stage))
        return _COUNTED[key]


class OnPicture(nn.Module):
    """A mixer whose input is a picture `(B, C, 1, N)` of its tokens, for the counter."""

    def __init__(self, mixer: TokenMixer, place: Place, pass_index: int) -> None:
        super().__init__()
        self.mixer, self.grid, self.pass_index = mixer, place.grid, pass_index

    def forward(self, picture: Tensor) -> Tensor:
        out: Tensor = self.mixer(picture.flatten(2).transpose(1, 2), self.grid, self.pass_index)
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
        sum(count_operators(OnPicture(mixer, place, pass_index), shape).values())
        for pass_index in range(place.stage_config.passes)
    ]
    return sum(parameter.numel() for parameter in mixer.parameters()), flops
