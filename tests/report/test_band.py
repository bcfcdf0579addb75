"""The front as a band: from a run to lines, numbers and words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.report.runs import run_of, trial
from tests.report.test_effects import run as made_up
from tests.report.test_effects import truth
from vitnas.records import Outcome
from vitnas.report.band import band_of, band_rows, band_text, span
from vitnas.report.front_figure import front_figure
from vitnas.report.page import render_pages
from vitnas.report.plots import front_png

PATH = Path("results/small")


def test_the_band_is_around_what_is_expected_and_the_same_each_time() -> None:
    run = made_up()
    band, again = band_of(run, "flops"), band_of(replace(run, name="again"), "flops")
    assert band is not None
    assert again is not None
    assert band.found.low.tolist() == again.found.low.tolist()
    assert band.number == 1000
    for member in run.front:
        there = band.there(member.flops)
        assert there is not None
        low, median, high = there
        assert low < median < high
        assert low - 1 < (member.estimate or 0.0) < high
    assert band.there(1) is None
    assert list(band.at) == sorted(band.at)
    assert span(run, "flops") == (band.found.low.min(), band.found.high.max())


def held(seeds: int, images: int) -> float:
    """The share of the true front, known here, that the bands of made-up runs hold."""
    inside = []
    for seed in range(seeds):
        run = made_up(60, seed, images)
        band = band_of(run, "flops")
        assert band is not None
        trials = sorted(run.complete, key=lambda one: one.flops)
        true = np.maximum.accumulate([truth(one.network, one.flops) for one in trials])
        lines = [band.there(one.flops) for one in trials]
        inside += [x[0] <= t <= x[2] for x, t in zip(lines, true, strict=True) if x is not None]
    return float(np.mean(inside))


def test_the_truth_is_inside() -> None:
    assert held(3, 400) > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("images", [287, 400, 2000])
def test_a_band_of_90_percent_holds_nearly_that(images: int) -> None:
    """A little less: docs/engine.md says so."""
    found = held(16, images)
    print(f"{images} images: {found:.1%}")
    assert 0.8 < found < 0.97


def test_more_images_and_more_trainings_make_it_narrower() -> None:
    deviations = []
    for images in (300, 4000, 100_000):
        band = band_of(made_up(40, 0, images), "flops")
        assert band is not None
        deviations.append(band.found.deviation)
    assert deviations == sorted(deviations, reverse=True)
    assert deviations[-1] < 0.15


def test_words_and_rows() -> None:
    run = made_up()
    text = band_text(run)
    assert "90 % of 1,000 fronts" in text
    assert "alone, because no network was trained twice" in text
    assert "points of top-1 from their middle, as a mean over log FLOPs" in text
    rows = band_rows(run)
    assert [row["number"] for row in rows] == [str(member.number) for member in run.front]
    assert all(float(row["low"]) <= float(row["median"]) <= float(row["high"]) for row in rows)
    repeated = run_of(PATH, trial(0, 50.0, replicates=(52.0,)), trial(1, 60.0, 2_000_000))
    assert "and from the scatter over seeds" in band_text(repeated)


@pytest.mark.slow
def test_each_cost_has_its_band() -> None:
    costs = {"name": "x", "objectives": {"flops": "minimize", "throughput": "maximize"}}
    fast = [trial(n, 50.0 + n, 10**6 * (n + 1), measured={"throughput": 90.0 - n}) for n in (0, 1)]
    run = run_of(PATH, *fast, space=costs)
    band = band_of(run, "throughput")
    assert band is not None
    assert band.at == pytest.approx((90.0, 89.0))
    assert "log FLOPs, and " in band_text(run)
    assert "log throughput" in band_text(run)
    blind = run_of(PATH, trial(0), space=costs)
    assert band_of(blind, "throughput") is None
    assert front_png(run).startswith(b"\x89PNG")


def test_a_network_that_is_on_the_front_by_another_cost_is_not_what_the_median_is_above() -> None:
    """Trial 1 is on the front for its throughput alone; trial 0 is better with fewer FLOPs."""
    costs = {"name": "x", "objectives": {"flops": "minimize", "throughput": "maximize"}}
    fast = [
        trial(n, top1, flops, measured={"throughput": speed})
        for n, (top1, flops, speed) in enumerate([(90.0, 10**6, 50.0), (60.0, 10**7, 99.0)])
    ]
    run = run_of(PATH, *fast, space=costs)
    assert len(run.front) == 2
    assert "The median is above the front" not in band_text(run)


@pytest.mark.slow
def test_both_plots_and_both_pages_have_it() -> None:
    run = made_up()
    figure = front_figure(run)
    assert figure is not None
    low, high, median = figure.data[:3]
    assert high["fill"] == "tonexty"
    assert len(low["x"]) == len(low["y"]) == len(high["y"]) == len(median["y"])
    assert figure.layout["yaxis"]["range"][1] >= max(high["y"])
    pages = render_pages(run, b"")
    for page in (pages.html, pages.markdown):
        assert "90 % of 1,000 fronts" in page
        assert "by 95 %" in page


def test_without_images_or_networks_there_is_none() -> None:
    for run in (
        run_of(PATH),
        run_of(PATH, trial(0), environment={}),
        run_of(PATH, trial(0, None, outcome=Outcome.FAILED)),
        run_of(PATH, trial(0, float("nan"))),
        run_of(PATH, trial(0, 50.0, 0)),
    ):
        assert band_of(run, "flops") is None
        assert band_text(run) == ""
        assert band_rows(run) == []
        assert "fronts, drawn" not in render_pages(run, b"").html


def test_a_single_network_has_a_band() -> None:
    run = run_of(PATH, trial(0, 50.0))
    band = band_of(run, "flops")
    assert band is not None
    assert band.found.deviation == pytest.approx(0.71 * 0.8, abs=0.15)
