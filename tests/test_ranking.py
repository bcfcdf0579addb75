"""What is expected of networks, their chances, and the front of a run that goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.report.runs import run_of
from tests.test_run import FEW_IMAGES, rising
from vitnas.ranking import chances_by_number, expecting, front_now, noise_of
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
