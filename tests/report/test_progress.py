"""Hypervolume over trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.runs import invented_run, run_of, trial
from vitnas.records import Outcome
from vitnas.report.progress import reached, reference_point, volume_curve

PATH = Path("results/small")


def test_the_curve_rises_to_one() -> None:
    values = [share for _, share in volume_curve(invented_run(PATH, 150))]
    assert values == sorted(values)
    assert values[-1] == 1.0


def test_two_trials_by_hand() -> None:
    tops = {1: 10.0, 3: 30.0, 5: 50.0}
    run = run_of(PATH, *(trial(n, top1, 30_000_000) for n, top1 in tops.items()))
    # the worst network and a limit of 300 M: areas 0, (30 - 10) ln 10 and (50 - 10) ln 10
    assert reference_point(run) == (10.0, 3e8)
    assert [number for number, _ in volume_curve(run)] == [1, 3, 5]
    assert [share for _, share in volume_curve(run)] == pytest.approx([0.0, 0.5, 1.0])


def test_on_easy_images_the_curve_is_not_flat() -> None:
    """Above chance the first network would have 99 %."""
    run = run_of(PATH, *(trial(n, top1) for n, top1 in enumerate((98.0, 98.5, 99.0))))
    assert [share for _, share in volume_curve(run)] == pytest.approx([0.0, 0.5, 1.0])


def test_without_limit_and_classes() -> None:
    run = run_of(PATH, trial(0, 30.0), trial(1, 40.0, 5_000_000), environment={}, space={})
    assert reference_point(run) == (30.0, 5e6)
    assert reference_point(run_of(PATH, environment={}, space={})) == (0.0, 1.0)


def test_no_curve_without_a_trial_better_than_the_worst() -> None:
    assert volume_curve(run_of(PATH)) == []
    assert volume_curve(run_of(PATH, trial(0, 9.0), trial(1, float("nan")))) == []
    assert volume_curve(run_of(PATH, trial(0, 50.0, outcome=Outcome.STOPPED))) == []


def test_reached_counts_complete_trials() -> None:
    curve = [(3, 0.5), (8, 0.96), (9, 1.0)]
    assert reached(curve, 0.95) == 2
    assert reached([], 0.95) is None
