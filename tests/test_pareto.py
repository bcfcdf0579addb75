"""The fast algorithms against the definitions, on small and on hostile point sets."""

from __future__ import annotations

import itertools
import math
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vitnas.pareto import front, front_ranks, hypervolume, knee

coarse = st.integers(0, 6).map(float)  # few values, so that ties and repeats are common
awkward = st.one_of(coarse, st.sampled_from([math.nan, math.inf, -math.inf]))


def tables(values: st.SearchStrategy[float], columns: tuple[int, int] = (2, 4)) -> Any:
    shape = st.tuples(st.integers(0, 14), st.integers(*columns))
    return shape.flatmap(lambda size: arrays(np.float64, size, elements=values))


def dominates(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((a <= b).all() and (a < b).any())


def front_by_definition(points: np.ndarray) -> list[int]:
    kept = []
    for index, point in enumerate(points):
        repeated = any((points[other] == point).all() for other in range(index))
        beaten = any(dominates(other, point) for other in points)
        if not (repeated or beaten or np.isnan(point).any()):
            kept.append(index)
    return kept


def volume_by_cells(points: np.ndarray, reference: list[int]) -> float:
    cells = itertools.product(*(range(limit) for limit in reference))
    return float(sum(any((point <= cell).all() for point in points) for cell in cells))


@given(tables(awkward))
def test_front_is_its_definition(points: np.ndarray) -> None:
    assert front(points) == front_by_definition(points)


@given(tables(awkward))
def test_ranks_peel_front_after_front(points: np.ndarray) -> None:
    ranks = front_ranks(points)
    known = ~np.isnan(points).any(axis=1)
    for rank in range(int(ranks[known].max(initial=-1)) + 1):
        left = np.flatnonzero(known & (ranks >= rank))
        for index in left:
            free = not any(dominates(points[other], points[index]) for other in left)
            assert free == (ranks[index] == rank)
    if not known.all():
        assert set(ranks[~known]) == {ranks[known].max(initial=-1) + 1}


@given(tables(coarse, (1, 3)))
def test_hypervolume_counts_unit_cells(points: np.ndarray) -> None:
    reference = [5, 4, 6][: points.shape[1]]
    assert hypervolume(points, reference) == pytest.approx(volume_by_cells(points, reference))


@given(tables(coarse, (2, 3)), st.randoms())
def test_order_and_dominated_points_change_no_volume(points: np.ndarray, random: Random) -> None:
    reference = [7.0] * points.shape[1]
    order = list(range(len(points)))
    random.shuffle(order)
    volume = hypervolume(points, reference)
    assert hypervolume(points[order], reference) == pytest.approx(volume)
    assert hypervolume(points[front(points)], reference) == pytest.approx(volume)


@given(arrays(np.float64, (9, 2), elements=coarse))
def test_knee_is_farthest_below_the_chord(points: np.ndarray) -> None:
    members = points[front(points)]
    scaled = (members - members.min(axis=0)) / np.maximum(np.ptp(members, axis=0), 1e-9)
    chosen = knee(members)
    assert scaled[chosen].sum() <= scaled.sum(axis=1).min() + 1e-9
    assert knee(members * [3.0, 1e6] + [7.0, -2.0]) == chosen


def test_knee_of_small_and_straight_fronts_is_the_earliest_end() -> None:
    assert knee([(3.0, 4.0)]) == 0
    assert knee([(-80.0, 9.0), (-70.0, 1.0)]) == 0
    assert knee([(0.1 * step, 1 - 0.1 * step) for step in range(11)]) == 0
    assert knee([(0.0, 1.0), (0.1, 0.2), (1.0, 0.0)]) == 1


def test_the_knee_of_three_objectives_is_the_least_sum_on_scaled_axes() -> None:
    assert knee([(0.0, 10.0, 500.0), (5.0, 0.0, 900.0), (2.0, 3.0, 600.0), (10.0, 9.0, 400.0)]) == 2


@pytest.mark.parametrize("points", [[], [(math.nan, 1.0)], [(math.inf, 1.0)], [1.0, 2.0]])
def test_knee_refuses_what_has_none(points: list[tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match=r"knee|objectives"):
        knee(points)


def test_equal_points_keep_the_first_and_share_a_rank() -> None:
    points = [(2.0, 2.0), (1.0, 1.0), (1.0, 1.0)]
    assert front(points) == [1]
    assert front_ranks(points).tolist() == [1, 0, 0]


def test_nothing_and_nan() -> None:
    assert front([]) == []
    assert front_ranks([]).tolist() == []
    assert hypervolume([], (1.0, 1.0)) == 0.0
    assert front([(math.nan, 0.0)]) == []
    assert front_ranks([(math.nan, 0.0)]).tolist() == [0]
    assert hypervolume([(math.nan, 0.0), (math.inf, 0.0), (0.0, 0.0)], (1.0, 2.0)) == 2.0


def test_hypervolume_refuses_what_is_not_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        hypervolume([(0.0, 0.0)], (1.0, math.inf))
    with pytest.raises(ValueError, match="infinite volume"):
        hypervolume([(-math.inf, 0.0)], (1.0, 1.0))


@pytest.mark.parametrize("points", [[1.0, 2.0], [[[1.0]]]])
def test_shapes_that_are_no_table_are_refused(points: list[object]) -> None:
    with pytest.raises(ValueError, match="rows"):
        front(points)  # type: ignore[arg-type]


@settings(deadline=None, max_examples=3)
@given(st.booleans())
def test_ten_thousand_points(all_on_front: bool) -> None:
    first = np.random.default_rng(0).random(10_000)
    second = 1 - first if all_on_front else np.random.default_rng(1).random(10_000)
    points = np.stack((first, second), axis=1)
    size = len(front(points))
    assert (size == 10_000) == all_on_front
    assert 0 < hypervolume(points, (1.0, 1.0)) < 1
