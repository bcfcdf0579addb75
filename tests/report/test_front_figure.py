"""Top-1 against a cost: every network is drawn once, and the legend is true."""

from __future__ import annotations

from pathlib import Path

from tests.report.runs import invented_run, run_of, tree, trial
from vitnas.records import Outcome
from vitnas.report.front_figure import front_figure
from vitnas.report.page import render_pages

PATH = Path("results/small")


def test_every_drawable_trial_is_drawn_once() -> None:
    run = invented_run(PATH, 150)
    figure = front_figure(run)
    assert figure is not None
    marks = [t for t in figure.data if "text" in t and "knee" not in t["name"]]
    drawn = run.count(Outcome.COMPLETE) + run.count(Outcome.STOPPED)
    assert sum(len(trace["x"]) for trace in marks) == drawn
    hollow = marks[0]
    assert hollow["name"] == "stopped early"
    assert all(symbol.endswith("-open") for symbol in hollow["marker"]["symbol"])
    assert all(trace["cliponaxis"] is False for trace in marks), "marks on the axis are whole"
    (key,) = (t for t in figure.data if t["name"] == "stopped early" and t is not hollow)
    assert hollow["showlegend"] is False
    assert hollow["legendgroup"] == key["legendgroup"]
    assert (key["x"], key["marker"]["symbol"]) == ([None], "circle-open"), "of no mixer"
    assert sum(name["name"].startswith("knee") for name in figure.data) == 1


def test_the_step_line_is_the_front() -> None:
    run = run_of(PATH, trial(0, 50.0), trial(1, 60.0, 4_000_000), trial(2, 40.0, 2_000_000))
    figure = front_figure(run)
    assert figure is not None
    (line,) = (trace for trace in figure.data if trace["name"] == "Pareto front")
    assert line["line"]["shape"] == "hv"
    assert line["x"][:2] == [1_000_000, 4_000_000]
    assert line["y"] == [50.0, 60.0, 60.0]


def test_the_legend_says_no_more_than_it_knows(tmp_path: Path) -> None:
    """One ska and one dwconv are not "mostly ska": the mixer stands there by its name alone."""
    run = run_of(tmp_path, trial(0, config=tree("ska", "dwconv")))
    figure = front_figure(run)
    assert figure is not None
    shown = [trace["name"] for trace in figure.data if trace.get("showlegend", True)]
    assert shown == ["90 % of drawn fronts", "median of drawn fronts", "Pareto front", "ska"]
    page = render_pages(run, b"").html
    assert "mostly" not in page
    assert "one that mixes all tokens, if it has any, else one that mixes neighbours" in page


def test_the_caption_speaks_of_hollow_marks_where_there_are_some(tmp_path: Path) -> None:
    without = run_of(tmp_path, trial(0))
    assert "ollow marks" not in render_pages(without, b"").html
    stopped = run_of(tmp_path, trial(0), trial(1, 20.0, outcome=Outcome.STOPPED))
    assert "Hollow marks are networks that were" in render_pages(stopped, b"").html
