"""Which learning rates a family of references is tried at, and which one it then has."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.test_baseline import DIGITS
from vitnas.config.baseline import PricedBaseline
from vitnas.engine.batch.rates import (
    best_rate,
    pilot,
    said_of,
    untried,
    within_reach,
)
from vitnas.records import Outcome


def climbed(
    own: float, top1: Mapping[int, float | None], start: float | None = None
) -> dict[float, float | None]:
    """All rates that are tried where a rate of 2^k times `own` reaches `top1[k]`."""
    tried: dict[float, float | None] = {}
    while new := untried(tried, start or own, own):
        assert not set(new) & set(tried)
        tried |= {lr: top1[round(log2(lr / own))] for lr in new}
    return tried


def test_a_peak_at_the_recipe_s_rate_takes_three_trainings() -> None:
    tried = climbed(0.01, {-1: 60.0, 0: 70.0, 1: 65.0})
    assert sorted(tried) == [0.005, 0.01, 0.02]
    assert best_rate(tried) == 0.01


def test_it_climbs_until_a_rate_is_better_than_both_beside_it() -> None:
    tried = climbed(0.01, {-1: 60.0, 0: 70.0, 1: 75.0, 2: 80.0, 3: 79.0})
    assert sorted(tried) == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert best_rate(tried) == 0.04


def test_it_climbs_from_another_rate_and_stays_within_reach_of_the_recipe_s() -> None:
    tried = climbed(0.01, dict(zip(range(-3, 4), range(7), strict=True)), start=0.04)
    assert sorted(tried) == [0.02, 0.04, 0.08]
    assert sorted(climbed(0.01, {1: 70.0, 2: 80.0, 3: 60.0}, start=0.04)) == [0.02, 0.04, 0.08]
    assert sorted(climbed(0.01, {2: 70.0, 3: 80.0}, start=0.08)) == [0.04, 0.08]


def test_what_diverges_is_worse_than_anything() -> None:
    tried = climbed(0.01, {-2: 10.0, -1: 20.0, 0: None, 1: None})
    assert best_rate(tried) == 0.005
    assert best_rate({0.1: None, 0.2: 0.0}) == 0.2


def test_where_all_diverge_lower_rates_follow_until_one_does_not() -> None:
    tried = climbed(0.01, {-3: 30.0, -2: 40.0, -1: None, 0: None, 1: None})
    assert sorted(tried) == [0.00125, 0.0025, 0.005, 0.01, 0.02]
    assert best_rate(tried) == 0.0025
    large = climbed(0.01, {0: 50.0, -1: 40.0, **dict.fromkeys(range(1, 4))}, start=0.04)
    assert sorted(large) == [0.005, 0.01, 0.02, 0.04, 0.08]
    assert best_rate(large) == 0.01


def test_an_eighth_of_the_recipe_s_rate_is_the_lowest_also_where_that_diverges() -> None:
    tried = climbed(0.01, dict.fromkeys(range(-3, 2)))
    assert sorted(tried) == [0.00125, 0.0025, 0.005, 0.01, 0.02]
    assert best_rate(tried) == 0.00125, "the others of the family may be smaller"


def test_a_failure_that_is_not_the_rate_s_leads_nowhere() -> None:
    """As where memory is short at each rate; its family then has the recipe's rate."""
    failed = said_of(Outcome.OOM, None)
    tried = climbed(0.01, dict.fromkeys(range(-1, 2), failed))
    assert sorted(tried) == [0.005, 0.01, 0.02]
    assert best_rate(tried) == 0.01
    assert best_rate({0.01: said_of(Outcome.DIVERGED, None), 0.02: failed}) == 0.02
    assert best_rate({0.01: said_of(Outcome.COMPLETE, 3.0), 0.02: failed}) == 0.01


def test_equal_rates_do_not_lead_away_from_the_recipe_s() -> None:
    """Images that are too easy: each rate has 100 %."""
    tried = climbed(0.01, dict.fromkeys(range(-1, 2), 100.0))
    assert best_rate(tried) == 0.01


@pytest.mark.parametrize(("own", "highest"), [(0.01, 0.08), (0.25, 1.0), (0.3, 0.6), (1.0, 1.0)])
def test_no_rate_is_beyond_what_a_recipe_can_have(own: float, highest: float) -> None:
    rates = within_reach(own)
    assert (rates[0], rates[-1]) == (own / 8, highest)
    assert own in rates
    assert set(climbed(own, dict(enumerate(range(7), start=-3)))) <= set(rates)


@given(
    st.floats(1e-6, 1.0),
    st.lists(st.none() | st.floats(0.0, 100.0), min_size=7, max_size=7),
    st.integers(0, 6),
)
def test_the_best_rate_is_no_worse_than_those_beside_it(
    own: float, reached: list[float | None], place: int
) -> None:
    top1 = dict(enumerate(reached, start=-3))
    reach = within_reach(own)
    tried = climbed(own, top1, start=reach[place % len(reach)])
    best = best_rate(tried)
    beside = [lr for lr in (best / 2, best * 2) if lr in within_reach(own)]
    assert all(lr in tried for lr in beside)
    assert all((tried[lr] or -1.0) <= (tried[best] or 0.0) for lr in beside)
    assert len(tried) <= len(within_reach(own))


@pytest.mark.parametrize(("number", "place"), [(1, 0), (2, 0), (3, 1), (4, 1)])
def test_the_pilot_is_in_the_middle_of_its_family(number: int, place: int) -> None:
    family = [PricedBaseline(DIGITS, flops, 1) for flops in range(1, number + 1)]
    assert pilot(family[::-1]) is family[place]
