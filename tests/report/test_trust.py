"""The statistics of trust against their definitions."""

from __future__ import annotations

from dataclasses import replace
from math import hypot
from pathlib import Path

import pytest
from scipy.stats import t as student

from tests.report.runs import run_of, trial
from vitnas.noise import binomial_error
from vitnas.records import Outcome, TrialRecord
from vitnas.report.caveats import sentences
from vitnas.report.trust import assess

PATH = Path("results/small")


def test_neighbours_closer_than_their_error_are_counted() -> None:
    trials = [trial(n, top1, 10**n) for n, top1 in enumerate([60.0, 60.5, 70.0], start=5)]
    trust = assess(run_of(PATH, *trials))  # 5,000 images: one error of a difference is 0.98
    assert trust.close_neighbours == 1
    assert trust.standard_error == pytest.approx(binomial_error(60.5, 5000))


def test_the_order_of_neighbours_is_a_probability() -> None:
    """Of a Student's t between neighbours a point and nine points apart."""
    scores = enumerate([60.0, 61.0, 70.0], start=5)
    trials = [trial(n, top1, 10**n, replicates=(top1 - 2, top1 + 2)) for n, top1 in scores]
    run = run_of(PATH, *trials)
    assert run.noise is not None
    errors = [run.noise.error(top1, 3) for top1 in (60.0, 61.0, 70.0)]
    steps = 1 / hypot(*errors[:2]), 9 / hypot(*errors[1:])
    expected = sum(student.cdf(step, run.noise.degrees) for step in steps) / 2
    assert assess(run).ordered == pytest.approx(expected)
    assert 0.8 < expected < 0.9
    assert assess(run_of(PATH, *map(once, trials))).ordered is None


def once(trial: TrialRecord) -> TrialRecord:
    return replace(trial, replicates=())


def test_taus_see_a_ranking_turn_round() -> None:
    curves = [(10.0, 20.0, 60.0), (20.0, 30.0, 50.0), (30.0, 40.0, 55.0)]
    trials = [trial(n, curve=curve, flops=10**n) for n, curve in enumerate(curves, start=4)]
    trust = assess(run_of(PATH, *trials))
    assert dict(trust.taus) == {1: pytest.approx(-1 / 3), 2: pytest.approx(-1 / 3)}
    assert trust.flops_tau == pytest.approx(-1 / 3)
    assert (trust.epochs, trust.num_ranked) == (3, 3)


def test_how_much_the_front_still_learns_is_told() -> None:
    curves = [(10.0, 20.0, 30.0, 40.0, 44.0, 45.0), (10.0, 20.0, 30.0, 50.0, 50.0, 57.0)]
    trials = [trial(n, curve=curve, flops=10**n) for n, curve in enumerate(curves, start=4)]
    trust = assess(run_of(PATH, *trials, trial(9, curve=(1.0, 80.0), flops=10**9)))
    assert trust.late_gain == pytest.approx((5.0 + 7.0) / 2), "two epochs have no last third"
    (told,) = [text for text in sentences(trust) if "still learn" in text]
    assert told.startswith("The front's members gained 6.0 points in the last third of their 6 ")
    assert "`--epochs 12`" in told
    assert not any("still learn" in text for text in sentences(replace(trust, late_gain=1.9)))
    assert assess(run_of(PATH, trial(9, curve=(1.0, 80.0)))).late_gain is None


def test_only_finite_curves_of_the_usual_length_are_ranked() -> None:
    trials = [trial(n, 50.0 + n) for n in range(4)]
    odd = [trial(8, curve=(1.0,)), trial(9, curve=(1.0, float("nan"), 2.0))]
    trust = assess(run_of(PATH, *trials, *odd, trial(10, outcome=Outcome.STOPPED)))
    assert (trust.num_ranked, trust.num_complete, trust.num_stopped) == (4, 6, 1)
