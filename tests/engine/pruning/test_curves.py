"""Where learning curves end: known answers, and intervals that hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.engine.pruning.test_pareto import EPOCHS, finished, record
from vitnas.engine.pruning.curves import MIN_CURVES, CurveModel
from vitnas.records import Outcome
from vitnas.surrogate.odds import percent


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_stated_confidence_holds_for_curves_like_the_finished_ones(confidence: float) -> None:
    """Of 3,000 optimistic ends so many are not exceeded, within sampling error."""
    held = 0
    for seed in range(100):
        known = finished(60, seed)
        model = CurveModel(known[:30])
        for trial in known[30:]:
            early = replace(trial, curve=trial.curve[:2])
            held += trial.curve[-1] <= model.optimistic(early, confidence)
    assert confidence - 0.03 <= held / 3000 <= confidence + 0.05


def test_few_curves_expect_no_gain_and_promise_nothing() -> None:
    model = CurveModel(finished(MIN_CURVES - 1))
    early = replace(finished(1, seed=3)[0], curve=(60.0, 55.0))
    mean, variance = model.expect([early])
    assert float(percent(mean[0])) == pytest.approx(60.0), "the best so far"
    assert variance.tolist() == [1.0]
    assert model.optimistic(early, 0.5) == float("inf")


def test_curves_that_all_rise_by_the_same_odds_are_continued() -> None:
    """Up to the ridge's pull, which is small with many curves."""
    known = []
    for number in range(60):
        odds = -1.0 + 0.05 * number
        curve = [float(percent(odds + 0.2 * epoch)) for epoch in range(EPOCHS)]
        known.append(record(number, 1000 + 37 * (number % 7), curve))
    model = CurveModel(known)
    trial = replace(known[30], curve=known[30].curve[:2])
    mean, variance = model.expect([trial])
    assert known[30].curve[-1] > trial.curve[-1] + 10
    assert float(percent(mean[0])) == pytest.approx(known[30].curve[-1], abs=0.5)
    assert variance[0] < 1e-2


def test_only_curves_of_full_length_are_learned_from() -> None:
    full, short = finished(6), [replace(t, curve=t.curve[:3]) for t in finished(9, seed=1)]
    running = [replace(t, outcome=Outcome.RUNNING) for t in finished(3, seed=2)]
    model = CurveModel([*short, *full, *running])
    assert (model.epochs, model.num_curves) == (EPOCHS, 6)


def test_more_confidence_is_a_higher_end() -> None:
    model = CurveModel(finished(60))
    early = replace(finished(1, seed=3)[0], curve=(60.0, 62.0))
    ends = [model.optimistic(early, confidence) for confidence in (0.5, 0.8, 0.95)]
    assert ends == sorted(ends)
    assert len(set(ends)) == 3
