"""The statistics against definitions and against SciPy, the sentences against runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from vitnas.noise import binomial_error
from vitnas.records import Outcome
from vitnas.report.caveats import sentences
from vitnas.report.trust import assess

PATH = Path("results/small")


def test_neighbours_closer_than_their_error_are_counted() -> None:
    trials = [trial(n, top1, 10**n) for n, top1 in enumerate([60.0, 60.5, 70.0], start=5)]
    trust = assess(run_of(PATH, *trials))  # 5,000 images: one error of a difference is 0.98
    assert trust.close_neighbours == 1
    assert trust.standard_error == pytest.approx(binomial_error(60.5, 5000))


def test_taus_see_a_ranking_turn_round() -> None:
    curves = [(10.0, 20.0, 60.0), (20.0, 30.0, 50.0), (30.0, 40.0, 55.0)]
    trials = [trial(n, curve=curve, flops=10**n) for n, curve in enumerate(curves, start=4)]
    trust = assess(run_of(PATH, *trials))
    assert dict(trust.taus) == {1: pytest.approx(-1 / 3), 2: pytest.approx(-1 / 3)}
    assert trust.flops_tau == pytest.approx(-1 / 3)
    assert (trust.epochs, trust.num_ranked) == (3, 3)


def test_only_finite_curves_of_the_usual_length_are_ranked() -> None:
    trials = [trial(n, 50.0 + n) for n in range(4)]
    odd = [trial(8, curve=(1.0,)), trial(9, curve=(1.0, float("nan"), 2.0))]
    trust = assess(run_of(PATH, *trials, *odd, trial(10, outcome=Outcome.STOPPED)))
    assert (trust.num_ranked, trust.num_complete, trust.num_stopped) == (4, 6, 1)


def test_test_scores_can_beat_the_front() -> None:
    trials = [
        trial(0, 60.0, 1_000_000, test_top1=61.0),
        trial(1, 62.0, 2_000_000, test_top1=59.0),
        trial(2, 64.0, 3_000_000, test_top1=63.0),
    ]
    trust = assess(run_of(PATH, *trials))
    assert trust.test_gaps == (-3.0, -1.0, 1.0)
    assert trust.num_beaten_on_test == 1


def said(*trials: Any, **more: Any) -> str:
    return "\n".join(sentences(assess(run_of(PATH, *trials, **more))))


def test_sentences_carry_their_numbers() -> None:
    trials = [trial(n, 50.0 + 5 * n, 10 ** (n + 4), test_top1=50.0 + 4 * n) for n in range(4)]
    text = said(*trials, trial(9, 1.0, outcome=Outcome.STOPPED))
    for part in (
        "5,000 images: one standard error is 0.70 points",
        "3 pairs of neighbours on the front, 0 differ",
        "over 4 complete trials",
        "So few trials make these taus rough",
        "1 trial was stopped early",
        "mean −1.50, from −3.00 to +0.00 points",
        "one seed",
    ):
        assert part in text, part


def test_a_starved_range_of_flops_is_named() -> None:
    trials = [trial(n, 50.0 + n, 10**6 + n) for n in range(16)]
    costly = [trial(20 + n, 40.0, 10**8 + n, outcome=Outcome.STOPPED) for n in range(8)]
    run = run_of(PATH, *trials, *costly)
    assert [(row.started, row.stopped) for row in assess(run).starved] == [(8, 8)]
    text = said(*trials, *costly)
    assert "100 M FLOPs 8 trainings began and none was finished" in text
    assert "none was finished" not in said(*trials, *costly, trial(40, 60.0, 10**8))


def test_sentences_say_what_is_not_known() -> None:
    assert "no ranking to trust" in said()
    text = said(trial(0), environment={})
    assert "does not say how many images" in text
    assert "1 complete trial cannot show" in text
    assert "No front member has a test top-1" in text


def test_thinned_runs_say_so() -> None:
    curves = np.random.default_rng(0).random((3200, 3)).cumsum(axis=1).tolist()
    trials = [trial(n, curve=tuple(curve)) for n, curve in enumerate(curves)]
    assert "over 1,067 of 3,200 complete trials, thinned evenly" in said(*trials)
    assert ENVIRONMENT["data"]["num_val_images"] == 5000  # what the numbers above rest on
