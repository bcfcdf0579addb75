"""Early stopping for two objectives: the front always lives, the decision is a pure function."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vitnas.engine.pruning import FrontRankPruner, default_rungs

points = st.tuples(st.integers(1, 10**9), st.floats(0, 100))
peers = st.lists(points, min_size=4, max_size=30)
PRUNER = FrontRankPruner((2, 5))


def dominates(a: tuple[int, float], b: tuple[int, float]) -> bool:
    return a[0] <= b[0] and a[1] >= b[1] and a != b


@given(points, peers)
def test_a_trial_on_the_front_of_its_rung_is_never_stopped(
    candidate: tuple[int, float], others: list[tuple[int, float]]
) -> None:
    assume(not any(dominates(other, candidate) for other in others))
    assert not PRUNER.should_stop(2, candidate, others)


@given(points, peers, st.randoms())
def test_the_order_of_the_others_does_not_matter(
    candidate: tuple[int, float], others: list[tuple[int, float]], random: st.DataObject
) -> None:
    before = PRUNER.should_stop(2, candidate, others)
    random.shuffle(others)  # type: ignore[attr-defined]
    assert PRUNER.should_stop(2, candidate, others) == before


@given(points, peers)
def test_only_rungs_stop(candidate: tuple[int, float], others: list[tuple[int, float]]) -> None:
    assert not PRUNER.should_stop(3, candidate, others)
    assert not FrontRankPruner(()).should_stop(2, candidate, others)


@given(st.lists(points, min_size=8, max_size=40, unique=True))
def test_at_least_the_kept_share_goes_on(trials: list[tuple[int, float]]) -> None:
    stopped = [
        trial for trial in trials if PRUNER.should_stop(2, trial, [t for t in trials if t != trial])
    ]
    assert len(stopped) <= len(trials) / 2


def test_the_worst_of_many_stops_and_few_are_not_judged() -> None:
    good = [(100, 90.0), (200, 92.0), (300, 94.0), (400, 95.0), (500, 96.0)]
    assert PRUNER.should_stop(2, (600, 50.0), good)
    assert not PRUNER.should_stop(2, (600, 50.0), good[:3])
    assert not PRUNER.should_stop(2, (50, 10.0), good)


@pytest.mark.parametrize(
    ("epochs", "rungs"), [(12, (2, 5)), (1, ()), (3, ()), (4, (1, 2)), (300, (50, 125))]
)
def test_rungs_scale_with_the_training(epochs: int, rungs: tuple[int, ...]) -> None:
    assert default_rungs(epochs) == rungs
