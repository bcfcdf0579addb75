"""What mixers cost: a formula for each of ours; others bring one or are counted."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nn.mixers.test_base import NAME, Bottleneck
from vitnas.config.mixers import MIXERS, MixerFacts
from vitnas.cost.mixers import (
    FORMULAS,
    counted_mixers,
    inverted_residual,
    is_counted,
    other_formula,
)
from vitnas.nn.mixers import TokenMixer, mixer_class
from vitnas.testing import place_of


def test_every_mixer_has_a_class_and_a_formula() -> None:
    assert set(FORMULAS) == set(MIXERS)
    for name, mixer in MIXERS.items():
        kind = mixer_class(name)
        assert issubclass(kind, TokenMixer)
        assert mixer.path == f"{kind.__module__}:{kind.__qualname__}"


def test_the_formula_of_attention_by_hand() -> None:
    """SReT, Section 4.2: g groups divide the cost of the maps by g."""
    place = place_of("mhsa", groups=[1, 4], qkv_bias=False)
    params, flops = FORMULAS["mhsa"](place.config, 0, 24)
    assert params == 4 * 16 * 16 + 16
    assert flops == [4 * 24 * 16 * 16 + 2 * 24 * 24 * 16 // groups for groups in (1, 4)]


@pytest.mark.parametrize("name", MIXERS)
def test_every_formula_has_a_figure_for_each_pass(name: str) -> None:
    fields: dict[str, Any] = {} if MIXERS[name].facts.whole else {"groups": [1, 1, 1]}
    config = place_of(name, **fields).config
    _, flops = FORMULAS[name](config, 0, 24)
    assert len(flops) == config.stages[0].passes


def test_an_inverted_residual_of_equal_widths_has_no_first_convolution() -> None:
    plain = inverted_residual(8, 8, 12, kernel=3, squeezed=0)
    assert plain == (0, 8 * 9 + 8 * 12, 0, 0)
    wide = inverted_residual(8, 16, 12, kernel=3, squeezed=2)
    assert wide == (8 * 16, 16 * 9 + 16 * 12, 2 * 16 * 2, 16 + 2)
    assert wide.params == sum(wide)
    assert wide.flops(40, 10) == 40 * wide.first + 10 * wide.rest + wide.gates


class Priced(Bottleneck):
    """Brings a formula of its own."""

    facts = MixerFacts(groups="ignored", cost=lambda config, stage, tokens: (3, [7 * tokens]))


def test_mixers_of_other_packages_bring_a_formula_or_are_counted() -> None:
    assert not any(is_counted(name) for name in MIXERS)
    assert is_counted(NAME)
    configs = [place_of("mhsa").config, place_of(NAME).config, place_of(NAME, depth=2).config]
    assert counted_mixers(configs) == [NAME]
    params, flops = other_formula(NAME)(place_of(NAME).config, 0, 24)
    assert (params, flops) == (2 * 16 * 8 + 8 + 16, [24 * 2 * 16 * 8])
    priced = f"{__name__}:Priced"
    assert not is_counted(priced)
    assert other_formula(priced)(place_of(priced).config, 0, 24) == (3, [168])
