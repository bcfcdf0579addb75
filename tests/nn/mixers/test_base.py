"""Places, and mixers without a closed form, which are built and counted."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pytest
import torch
from pydantic import Field
from torch import Tensor, nn

from vitnas.config.mixers import MixerFacts, MixerOptions
from vitnas.errors import ConfigError, VitnasError
from vitnas.nn.layers.resizing import TokenLayout
from vitnas.nn.mixers import Place, TokenMixer
from vitnas.testing import GRID, WIDTH, place_of


class Options(MixerOptions):
    hidden: Annotated[int, Field(ge=1, le=64)] = 8


class Bottleneck(TokenMixer):
    """Two linear layers, without a closed form."""

    facts = MixerFacts(groups="ignored", options=Options)
    built: ClassVar[int] = 0

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, hidden), nn.Linear(hidden, dim))

    @classmethod
    def at(cls, place: Place) -> TokenMixer:
        cls.built += 1
        return cls(place.stage_config.embed_dim, place.options.hidden)

    def forward(self, x: Tensor, grid: Any, pass_index: int = 0, taps: Any = None) -> Tensor:
        out: Tensor = self.layers(x)
        return out


NAME = f"{__name__}:Bottleneck"
TOKENS = GRID[0] * GRID[1]


def counted(**fields: Any) -> tuple[int, list[int]]:
    place = place_of(NAME, **fields)
    return Bottleneck.counted(place.config, 0, TOKENS)


@pytest.mark.parametrize(("hidden", "groups"), [(8, [1]), (24, [1]), (8, [4, 2])])
def test_a_mixer_without_a_closed_form_is_counted(hidden: int, groups: list[int]) -> None:
    params, flops = counted(mixer_options={"hidden": hidden}, groups=groups)
    assert params == 2 * WIDTH * hidden + hidden + WIDTH
    assert flops == [TOKENS * 2 * WIDTH * hidden] * len(groups)


def test_each_form_is_built_once_and_draws_nothing() -> None:
    before, state = Bottleneck.built, torch.get_rng_state()
    first = counted(mixer_options={"hidden": 5}, depth=1)
    assert Bottleneck.built == before + 1
    assert counted(mixer_options={"hidden": 5}, depth=3, mlp_ratio=2.0) == first
    assert Bottleneck.built == before + 1, "depth and MLP are nothing to a mixer"
    counted(mixer_options={"hidden": 6})
    assert Bottleneck.built == before + 2
    assert torch.equal(torch.get_rng_state(), state)


def test_a_place_knows_its_stage_and_its_mixers_options() -> None:
    place = place_of(NAME, block=3)
    assert (place.grid, place.num_tokens, place.block) == (GRID, TOKENS, 3)
    assert place.stage_config is place.config.stages[0]
    assert place.options == Options(hidden=8)
    assert place_of(NAME, mixer_options={"hidden": 3}).options.hidden == 3
    with pytest.raises(ConfigError, match="hidden"):
        place_of(NAME, mixer_options={"hidden": 65})


def test_a_mixer_that_does_not_say_how_is_not_resized() -> None:
    layout = TokenLayout(GRID, 0)
    with pytest.raises(VitnasError, match="Bottleneck cannot be resized"):
        Bottleneck(WIDTH, 8).resized(layout, layout)
