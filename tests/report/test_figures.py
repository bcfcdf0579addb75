"""What the plots of the page show and leave out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report.runs import run_of, trial
from vitnas.records import Outcome
from vitnas.report.figures import (
    MOST_CURVES,
    MOST_POINTS,
    curves_figure,
    thin,
    volume_figure,
)
from vitnas.report.front_figure import front_figure

PATH = Path("results/small")


@pytest.mark.slow
def test_large_runs_are_thinned_and_say_so() -> None:
    trials = [trial(n, 50.0 + (n % 7) / 10, 1_000_000 + n) for n in range(2 * MOST_POINTS)]
    run = run_of(PATH, *trials)
    front, curves = front_figure(run), curves_figure(run)
    assert front is not None
    assert curves is not None
    assert sum(len(t["x"]) for t in front.data if t["mode"] == "markers") <= (
        MOST_POINTS + len(run.front) + 2
    )
    assert "left out of the drawing" in front.note
    assert sum(t["x"].count(1) for t in curves.data) <= MOST_CURVES + len(run.front)
    assert "curves are left out" in curves.note
    assert thin([], 3) == []
    assert thin(range(7), 3) == [0, 3, 6]


def test_figures_are_json_without_nan() -> None:
    broken = trial(5, curve=(float("nan"), 30.0, 40.0), flops=3_000_000)
    run = run_of(PATH, trial(0, 50.0), trial(1, float("nan")), trial(2, 60.0, 0), broken)
    for figure in (front_figure(run), curves_figure(run), volume_figure(run)):
        assert figure is not None
        json.dumps(figure.data, allow_nan=False)


def test_nothing_to_draw_is_none() -> None:
    run = run_of(PATH, trial(0, None, outcome=Outcome.FAILED))
    assert front_figure(run) is curves_figure(run) is volume_figure(run) is None
