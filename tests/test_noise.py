"""The noise of trainings: against definitions, against simulation, and by its properties."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vitnas.noise import (
    CONFIDENT,
    PLAUSIBLE,
    PRIOR_DEGREES,
    Expected,
    Noise,
    binomial_error,
    chances_of,
    contenders,
    measure,
)
from vitnas.pareto import front

IMAGES = 400
scores = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=4)
networks = st.lists(st.tuples(scores, st.integers(1, 6)), min_size=1, max_size=7)


def chances(
    trainings: Sequence[Sequence[float]], costs: Sequence[Sequence[float]], noise: Noise
) -> np.ndarray[Any, Any]:
    """By each network's own trainings."""
    return chances_of(noise.expected(trainings), costs, noise.degrees)


def chance(found: list[tuple[list[float], int]]) -> np.ndarray[Any, Any]:
    trainings, costs = [s for s, _ in found], [(float(c),) for _, c in found]
    return chances(trainings, costs, measure(trainings, IMAGES))


@settings(deadline=None, max_examples=60)
@given(networks)
def test_chances_are_probabilities_whatever_the_order(
    found: list[tuple[list[float], int]],
) -> None:
    forward, backward = chance(found), chance(found[::-1])[::-1]
    assert ((forward >= 0) & (forward <= 1)).all()
    np.testing.assert_allclose(forward, backward, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(networks)
def test_of_each_cost_at_most_one_network_and_of_the_lowest_exactly_one(
    found: list[tuple[list[float], int]],
) -> None:
    """Sums are within quadrature and what is below 0.001 and taken as 0."""
    result, costs = chance(found), np.array([cost for _, cost in found])
    for cost in set(costs.tolist()):
        assert result[costs == cost].sum() <= 1.02
    assert result[costs == costs.min()].sum() == pytest.approx(1.0, abs=0.02)


@settings(deadline=None, max_examples=40)
@given(networks)
def test_contenders_leave_out_nobody_plausible(found: list[tuple[list[float], int]]) -> None:
    trainings, costs = [s for s, _ in found], [(float(c),) for _, c in found]
    near = contenders(trainings, costs, measure(trainings, IMAGES))
    assert near[chance(found) >= PLAUSIBLE].all()
    means = [(-np.mean(s), c) for s, (c,) in zip(trainings, costs, strict=True)]
    assert near[front(means)].all()


def test_one_that_is_far_behind_has_no_chance() -> None:
    found = chance([([95.0, 95.2], 1), ([60.0], 2), ([97.0], 2)])
    assert found[0] == pytest.approx(1.0)
    assert found[1] == 0.0
    assert found[2] > CONFIDENT - 0.1


def test_two_alike_have_even_chances_and_costs_beyond_flops_count() -> None:
    noise = measure([[90.0], [90.0]], IMAGES)
    assert chances([[90.0], [90.0]], [(1,), (1,)], noise) == pytest.approx([0.5, 0.5], abs=1e-6)
    either = chances([[90.0], [80.0]], [(1, 2), (2, 1)], noise)
    assert either == pytest.approx([1.0, 1.0]), "neither costs less in all"


def test_a_network_of_unknown_cost_is_on_no_front() -> None:
    """As in `vitnas.pareto`: it has no rivals, and is not on the front for that."""
    noise = measure([[90.0], [99.0]], IMAGES)
    found = chances([[90.0], [99.0]], [(1.0, 2.0), (1.0, float("nan"))], noise)
    assert found == pytest.approx([1.0, 0.0])


def test_nobody_alone_is_in_doubt() -> None:
    assert chances([[12.0]], [(3.0,)], measure([[12.0]], 10)) == pytest.approx([1.0])
    assert chances([], [], measure([], 10)).shape == (0,)


def test_a_pair_is_the_closed_form_of_students_t() -> None:
    stats = pytest.importorskip("scipy.stats")
    trainings = [[90.0, 91.0, 89.5], [91.0, 92.5]]
    noise = measure(trainings, IMAGES)
    errors = [noise.error(float(np.mean(s)), len(s)) for s in trainings]
    apart = (91.75 - np.mean(trainings[0])) / np.hypot(errors[0], errors[1])
    expected = stats.t.cdf(apart, noise.degrees)
    assert chances(trainings, [(1,), (2,)], noise)[1] == pytest.approx(expected, abs=2e-3)


def test_figures_of_earlier_code() -> None:
    """Written when the quantiles of Student's t were worked out here, by quadrature."""
    trainings = [
        [58.23], [61.28, 64.0], [62.56, 65.78, 62.62], [70.65], [72.3, 74.03],
        [74.24, 75.6, 74.57], [76.89], [81.22, 79.11],
    ]  # fmt: skip
    costs = [(index // 2,) for index in range(8)]
    noise = measure(trainings, IMAGES)
    assert noise.dispersion == pytest.approx(0.6258141602654214, rel=1e-12)
    assert (noise.degrees, noise.num_images) == (11, IMAGES)
    expected = [
        0.045089414678469934, 0.9549105671774918, 0.0, 0.9949008607359751,
        0.15580257033238198, 0.8178440870776601, 0.06504997408255069, 0.9330822937903124,
    ]  # fmt: skip
    assert chances(trainings, costs, noise) == pytest.approx(expected, abs=1e-9)
    near = [False, True, False, True, True, True, True, True]
    assert contenders(trainings, costs, noise).tolist() == near


def test_the_binomial_error_is_that_of_draws() -> None:
    draws = np.random.default_rng(0).binomial(IMAGES, 0.8, size=20_000) / 4
    assert binomial_error(80.0, IMAGES) == pytest.approx(draws.std(), rel=0.02)
    assert binomial_error(80.0, IMAGES) == pytest.approx(2.0, abs=1e-9)
    assert binomial_error(100.0, IMAGES) > 0


def test_many_are_what_a_simulation_says() -> None:
    draw = np.random.default_rng(1)
    trainings = [list(draw.normal(90 + k / 4, 1.2, draw.integers(1, 5))) for k in range(12)]
    costs = draw.permutation(12)[:, None] // 2 + 1.0
    noise = measure(trainings, IMAGES)
    means = np.array([np.mean(s) for s in trainings])
    errors = [noise.error(m, len(s)) for m, s in zip(means, trainings, strict=True)]
    scale = np.sqrt(noise.degrees / draw.chisquare(noise.degrees, (100_000, 1)))
    truth = means + draw.normal(size=(100_000, 12)) * errors * scale
    for i, found in enumerate(chances(trainings, costs.tolist(), noise)):
        rivals = (costs[:, 0] <= costs[i, 0]) & (np.arange(12) != i)
        best = truth[:, rivals].max(axis=1, initial=-np.inf)
        assert found == pytest.approx((truth[:, i] > best).mean(), abs=6e-3)


def test_without_replicates_the_error_is_the_binomial_one() -> None:
    noise = measure([[80.0], [90.0]], IMAGES)
    assert (noise.dispersion, noise.degrees, noise.is_measured) == (1.0, PRIOR_DEGREES, False)
    assert noise.error(80.0) == pytest.approx(2.0)
    assert noise.error(80.0, 4) == pytest.approx(1.0)
    assert 0 < noise.error(100.0) < noise.error(99.0)


def test_the_dispersion_is_pooled_with_the_prior() -> None:
    trainings = [[79.0, 81.0], [90.0, 90.0, 90.0], [50.0]]  # squares 2 of a variance of 4
    noise = measure(trainings, IMAGES)
    assert noise.degrees == PRIOR_DEGREES + 3
    assert noise.dispersion == pytest.approx((PRIOR_DEGREES + 2 / 4) / (PRIOR_DEGREES + 3))


@pytest.mark.parametrize("phi", [0.5, 3.0])
def test_the_dispersion_is_found(phi: float) -> None:
    draw = np.random.default_rng(0)
    noise = Noise(phi, 10**6, IMAGES)
    trainings = [list(draw.normal(m, noise.error(m), 5)) for m in draw.uniform(60, 97, 100)]
    assert measure(trainings, IMAGES).dispersion == pytest.approx(phi, rel=0.15)


def test_order_of_trainings_does_not_matter() -> None:
    found = [
        chance([(list(order), 1), ([90.0, 92.0], 2)]) for order in permutations([89.0, 90.5, 92.0])
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-12)


def test_who_is_ahead_is_students_t() -> None:
    noise = measure([[90.0, 91.0, 92.0], [80.0]], 500)
    one, other = Expected(91.0, 0.6), Expected(90.0, 0.8)
    assert noise.ahead(one, other) == pytest.approx(stats.t.cdf(1.0, noise.degrees))
    assert noise.ahead(one, other) + noise.ahead(other, one) == pytest.approx(1.0)
    sure = Expected(50.0, 0.0)
    assert noise.ahead(sure, sure) == 0.5
    assert noise.ahead(Expected(60.0, 0.0), sure) == pytest.approx(1.0)
