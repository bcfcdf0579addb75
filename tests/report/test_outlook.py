"""What more replicates would tell of a choice, and which of a search's options makes them."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.runs import run_of, trial
from vitnas.engine.decide.replicates import Replication
from vitnas.exported.choose import Target
from vitnas.report.choice import choose
from vitnas.report.outlook import Outlook, foreseen, is_sure
from vitnas.run import Run

MANY = 1e6


@given(st.lists(st.tuples(st.floats(60, 70), st.floats(0.1, 3)), min_size=2, max_size=5))
def test_more_measurement_never_misleads(pairs: list[tuple[float, float]]) -> None:
    means, errors = zip(*pairs, strict=True)
    now = foreseen(means, errors, [inf] * len(pairs), 6)
    some, exact = (foreseen(means, errors, [error] * len(pairs), 6) for error in (1.0, 1e-6))
    assert now[1] + 0.05 >= some[1] >= exact[1] - 1e-9
    assert exact == pytest.approx((1.0, 0.0), abs=0.01)


def test_the_outlook_of_two_equal_networks_is_known() -> None:
    """The best of two equals with error 1 is ahead of either by E|d| / 2 = 1 / sqrt(pi)."""
    chance, loss = foreseen([50.0, 50.0], [1.0, 1.0], [inf, inf], MANY)
    assert chance == pytest.approx(0.5, abs=0.02)
    assert loss == pytest.approx(0.564, abs=0.02)


def rivals_off_the_front() -> Run:
    """Trials 1 to 3 are dearer than trial 0 and may be better, each with a chance below 0.1."""
    others = [trial(n, 58.4, 2_000_000 + n) for n in (1, 2, 3)]
    return run_of(Path("r"), trial(0, 60.0), *others)


def outlook_of_choice(run: Run, target: Target | None = None) -> Outlook:
    found = choose(run, target or Target()).outlook
    assert found is not None
    return found


def test_as_it_is_now_the_outlook_has_the_chance_that_is_printed() -> None:
    for run in (rivals_off_the_front(), run_of(Path("r"), trial(0), trial(1, 50.5, 2_000_000))):
        found = choose(run, Target())
        assert found.outlook is not None
        assert found.outlook.steps[0].chance == pytest.approx(found.chance, abs=0.02)
        assert found.outlook.steps[0].trainings == 0


def test_what_replicates_alone_do_not_train_is_named_and_all_are_trained_where_only_that_is_enough(
) -> None:  # fmt: skip
    run = rivals_off_the_front()
    assert Replication(8, 5000).next([*run.trials]) == 0
    assert Replication(8, 5000)._near(run.trials).keys() == {0}
    found = outlook_of_choice(run)
    assert (found.left, found.of_all, found.is_enough) == ((1, 2, 3), True, True)
    assert [one.trainings for one in found.steps] == [0, 4, 8, 16, 32][: len(found.steps)]


def test_rivals_near_the_front_need_no_training_of_all() -> None:
    run = run_of(Path("r"), trial(0, 60.0), trial(1, 60.9, 2_000_000), trial(2, 20.0, 3_000_000))
    found = outlook_of_choice(run)
    assert (found.left, found.of_all, found.is_enough) == ((), False, True)
    chances = [one.chance for one in found.steps]
    assert chances == sorted(chances)
    first = found.steps[1]
    assert (first.replicates, first.trainings, first.seconds) == (1, 2, 25.0)


def test_replicates_are_a_total() -> None:
    """Trial 0 has one more than trial 1: `--replicates 3` makes one of it and two of the other."""
    again = [trial(n, 60.0, replicate_of=of) for n, of in ((2, 0), (3, 0), (4, 1))]
    known = [
        trial(0, 60.0, replicates=(60.0, 60.0)),
        trial(1, 60.2, 2_000_000, replicates=(60.2,)),
    ]
    steps = outlook_of_choice(run_of(Path("r"), *known, replicates=tuple(again))).steps
    assert [(one.replicates, one.trainings) for one in steps[:3]] == [(2, 0), (3, 3), (4, 5)]


def test_with_a_least_top1_it_is_told_whether_the_network_reaches_it() -> None:
    run = run_of(Path("r"), trial(0, 60.0), trial(1, 80.0, 2_000_000))
    found = choose(run, Target(min_top1=59.5))
    assert found.outlook is not None
    chances = [one.chance for one in found.outlook.steps]
    assert chances[0] == pytest.approx(found.chance, abs=0.02)
    assert chances == sorted(chances)
    assert choose(run, Target(min_top1=55.0)).outlook is None, "it is sure"


def test_sure_is_what_is_printed_as_enough() -> None:
    assert [is_sure(chance) for chance in (0.89, 0.894, 0.896, 0.9)] == [False, False, True, True]
