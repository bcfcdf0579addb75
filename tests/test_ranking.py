"""What is expected of networks, their chances, and the front of a run that goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.report.runs import run_of, trial
from tests.test_run import FEW_IMAGES, rising
from vitnas.ranking import chances_by_number, draws_of, expecting, front_now, near_front, noise_of
from vitnas.records import Outcome, front_of

IMAGES = 400


def test_the_front_so_far_is_the_run_s() -> None:
    run = run_of(Path("few"), *rising(20, lucky=4), environment=FEW_IMAGES)
    now = front_now(run.trials, IMAGES, ["flops"])
    assert [t.number for t in now] == [t.number for t in run.front]
    by_score = [t.number for t in front_now(run.trials, None, ["flops"])]
    assert by_score == [t.number for t in front_of(run.trials, ["flops"])]


def test_replicates_move_the_front_so_far() -> None:
    trials = rising(12)
    again = [
        replace(trials[3], number=number, replicate_of=3, curve=(95.0,)) for number in range(12, 18)
    ]
    assert front_now((*trials, *again), IMAGES, ["flops"])[-1].number == 3


def test_of_many_networks_something_is_expected_of_those_near_the_front() -> None:
    trials = rising(30, lucky=29)
    found = expecting(trials, noise_of(trials, IMAGES), ["flops"], most=20)
    known = {t.number for t in found if t.expected is not None}
    assert len(known) == 20
    assert {t.number for t in front_of(trials, ["flops"])} >= known


def test_without_images_or_scores_nothing_is_known() -> None:
    trials = rising(9)
    assert noise_of(trials, None) is None
    assert expecting(trials, None, ["flops"]) == trials
    assert chances_by_number(trials, None, ["flops"]) == {}
    stopped = [replace(trials[0], outcome=Outcome.STOPPED)]
    assert chances_by_number(stopped, noise_of(stopped, IMAGES), ["flops"]) == {}


def test_near_the_front_is_what_is_on_it_or_plausible() -> None:
    run = run_of(Path("few"), trial(0, 60.0), trial(1, 59.9, 2_000_000), trial(2, 20.0, 10**7))
    chances = {0: 0.05, 1: 0.1, 2: 0.09}
    assert near_front(run.complete, chances, ["flops"]) == {0: 0.05, 1: 0.1}


def test_drawn_fronts_agree_with_the_chances() -> None:
    """Fewer than eight networks are independent, and so the shares of draws are the chances."""
    run = run_of(Path("few"), *rising(6, lucky=4), environment=FEW_IMAGES)
    draws = run.draws
    assert draws is not None
    assert draws.top1.shape == (1000, len(draws.trials))
    order = np.argsort([trial.flops for trial in draws.trials])
    best = np.maximum.accumulate(draws.top1[:, order], axis=1)
    first = np.ones(len(draws.top1), dtype=bool)
    for place, index in enumerate(order.tolist()):
        wins = first if place == 0 else draws.top1[:, index] > best[:, place - 1]
        chance = run.chances[draws.trials[index].number]
        assert wins.mean() == pytest.approx(chance, abs=0.05)


def test_draws_are_around_what_is_expected_and_alike_networks_err_alike() -> None:
    run = run_of(Path("few"), *rising(30), environment=FEW_IMAGES)
    draws = run.draws
    assert draws is not None
    expected = [trial.estimate or 0.0 for trial in draws.trials]
    assert np.median(draws.top1, axis=0) == pytest.approx(expected, abs=0.6)
    assert ((draws.top1 >= 0) & (draws.top1 <= 100)).all()
    again = draws_of(run.complete, run.noise, run.chances)
    assert again is not None
    np.testing.assert_array_equal(draws.top1, again.top1)


def test_nothing_known_is_nothing_drawn() -> None:
    assert draws_of(rising(9), None, {}) is None
    assert run_of(Path("empty")).draws is None
