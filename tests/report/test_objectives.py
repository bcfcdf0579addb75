"""The report of a run with three objectives: columns, axes, panels and volumes follow."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing
from dataclasses import replace
from math import log
from pathlib import Path

import pytest

from tests.report.runs import ENVIRONMENT, SPACE, reference, run_of, trial
from vitnas.config.costs import COSTS
from vitnas.engine.store.study import read_run
from vitnas.pareto import hypervolume
from vitnas.records import BaselineRecord, Outcome, TrialRecord
from vitnas.report import front_text, write_report
from vitnas.report.front_figure import front_figure
from vitnas.report.lead import key_numbers, lead
from vitnas.report.page import render_pages
from vitnas.report.plots import step_line
from vitnas.report.progress import reference_point, volume_curve
from vitnas.report.summary import summary_view
from vitnas.report.tables import front_csv, trials_csv
from vitnas.report.trust import assess
from vitnas.report.write import config_text
from vitnas.run import Run

THREE = {"top1": "maximize", "num_params": "minimize", "latency_ms": "minimize"}


def member(
    number: int, top1: float, params: int, latency: float, device: str = "a card"
) -> TrialRecord:
    return trial(
        number,
        top1,
        num_params=params,
        measured={"latency_ms": latency, "peak_memory_mb": 1.5},
        measured_on=device,
    )


def run(path: Path, device: str = "a card") -> Run:
    trials = [
        member(0, 50.0, 1_000, 2.0),
        member(1, 60.0, 4_000, 1.0),
        member(2, 70.0, 9_000, 3.0, device),
        member(3, 55.0, 9_000, 2.5),  # beaten by 1
        trial(
            4,
            None,
            outcome=Outcome.REFUSED,
            measured={"latency_ms": 90.0},
            measured_on="a card",
            error="slow",
        ),
        trial(5, 90.0),  # not measured
    ]
    return run_of(path, *trials, space={**SPACE, "objectives": THREE}, environment=ENVIRONMENT)


def test_front_and_texts(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert [t.number for t in found.front] == [0, 1, 2]
    assert found.knee is found.front[1]
    assert "front of expected top-1 against parameters and latency, out of 6" in lead(found)
    labels = {key["label"]: key["detail"] for key in key_numbers(found)}
    assert labels["Fewest parameters"] == "1.00 k parameters, 2.00 ms, trial 0"
    assert labels["Knee of the front, lowest latency"].endswith("trial 1")
    head, first, *_ = front_text(found).splitlines()
    assert head.split()[-4:] == ["params", "latency", "memory", "network"]
    assert "2.00 ms  1.50 MB" in first
    assert assess(found).num_devices == 1
    assert assess(run(tmp_path, "another")).num_devices == 2


def test_tables(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(front_csv(run(tmp_path)))))
    assert [row["latency_ms"] for row in rows] == ["2.0", "1.0", "3.0"]
    assert "gain_points" not in rows[0]
    everything = list(csv.DictReader(io.StringIO(trials_csv(run(tmp_path)))))
    assert everything[4]["latency_ms"] == "90.0"
    assert everything[0]["measured_on"] == "a card"


def test_a_study_of_earlier_code_reads_the_same(tmp_path: Path) -> None:
    """Its latency and memory were fields of their own. That code wrote its tables, except for the
    columns of expected top-1, of the front by test and the networks' lines, which said less."""
    held = Path(__file__).parent / "measured_study"
    with closing(sqlite3.connect(tmp_path / "study.db")) as database:
        database.executescript((held / "study.sql").read_text())
    found = read_run(tmp_path)
    assert found.costs == ("flops", "latency_ms")
    assert trials_csv(found) == (held / "trials.csv").read_text()
    assert front_csv(found) == (held / "front.csv").read_text()


def test_one_other_cost_names_its_ratio(tmp_path: Path) -> None:
    only = {"top1": "maximize", "latency_ms": "minimize"}
    found = run_of(tmp_path, *run(tmp_path).trials, space={"objectives": only})
    rows = list(csv.DictReader(io.StringIO(front_csv(found))))
    assert [row["latency_ms_ratio"] for row in rows] == ["", "3.0"]


def test_one_panel_a_cost(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert step_line(found, "num_params") == ([1_000, 4_000, 9_000], [50.0, 60.0, 70.0])
    assert step_line(found, "latency_ms") == ([1.0, 3.0], [60.0, 70.0])
    figure = front_figure(found, "latency_ms")
    assert figure is not None
    assert figure.layout["xaxis"]["title"]["text"] == "latency of one image (ms)"
    write_report(found)
    page = (tmp_path / "report.html").read_text()
    assert 'id="front_plot"' in page
    assert 'id="front_plot_latency_ms"' in page
    assert "Gain" not in page
    assert "Cost, ×" not in page


def test_the_volume_counts_all_costs(tmp_path: Path) -> None:
    """What is added one by one is the hypervolume of the whole, in every prefix."""
    found = run(tmp_path)
    worst, *dearest = reference_point(found)
    corner = (-worst, *(log(cost) + 1e-9 for cost in dearest))
    points = [
        (-(t.top1 or 0), log(t.num_params), log(t.measured["latency_ms"]))
        for t in found.complete[:4]
    ]
    whole = hypervolume(points, corner)
    expected = [hypervolume(points[: n + 1], corner) / whole for n in range(4)]
    curve = volume_curve(found)
    assert [number for number, _ in curve] == [0, 1, 2, 3]
    assert [share for _, share in curve] == pytest.approx(expected)


def fast_and_slow(path: Path) -> Run:
    """Three on the front, the fastest the worst; one that another beats in both."""
    pairs = [(60.0, 4_000.0), (75.0, 900.0), (70.0, 2_000.0), (59.0, 3_000.0)]
    trials = [
        trial(number, top1, measured={"throughput": speed}, measured_on="a card")
        for number, (top1, speed) in enumerate(pairs)
    ]
    space = {**SPACE, "objectives": {"top1": "maximize", "throughput": "maximize"}}
    return run_of(path, *trials, space={**space, "limits": {"throughput": {"min": 500}}})


def test_of_a_maximised_cost_more_is_better(tmp_path: Path) -> None:
    found = fast_and_slow(tmp_path)
    assert [t.number for t in found.front] == [0, 2, 1]
    assert found.knee is found.front[1]
    assert found.chances[3] < found.chances[0]
    assert step_line(found, "throughput") == ([4_000, 2_000, 900], [60.0, 70.0, 75.0])
    assert reference_point(found) == (59.0, 500.0)
    corner, points = (
        (-59.0, -log(500) + 1e-9),
        [(-t.curve[-1], -log(t.measured["throughput"])) for t in found.trials],
    )
    whole = hypervolume(points, corner)
    expected = [hypervolume(points[: n + 1], corner) / whole for n in range(4)]
    assert [share for _, share in volume_curve(found)] == pytest.approx(expected)


def test_the_line_of_a_maximised_cost_goes_on_to_the_slow_end(tmp_path: Path) -> None:
    figure = front_figure(fast_and_slow(tmp_path), "throughput")
    assert figure is not None
    (line,) = (trace for trace in figure.data if trace["name"] == "Pareto front")
    assert line["x"][:3] == [4_000, 2_000, 900]
    assert line["x"][3] == pytest.approx(10 ** figure.layout["xaxis"]["range"][0])
    assert line["y"] == [60.0, 70.0, 75.0, 75.0]


def test_words_about_a_maximised_cost(tmp_path: Path) -> None:
    found = fast_and_slow(tmp_path)
    write_report(found)
    page, text = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    assert "best expected top-1 for at least the value on the axis" in page
    corner = "above the 59.0 % top-1 of the worst network and above 500 images/s"
    assert f"in top-1 points × ln throughput, {corner}" in text
    assert "Throughput is of 64 images, measured once for each network" in text
    assert "4,000 images/s" in front_text(found)
    both = replace(found, space={"objectives": THREE | {"throughput": "maximize"}})
    assert summary_view(both)["bound"] == "at most (at least for throughput)"


def test_the_caption_tells_of_baselines_where_they_are_drawn(tmp_path: Path) -> None:
    """Nobody measures a baseline's throughput; what is below the axis is told at its plot."""
    known = [
        BaselineRecord(network=reference(), outcome=Outcome.COMPLETE, flops=10**6, curve=(top1,))
        for top1 in (60.0, 1.0)
    ]
    trials = [trial(n, 60.0 + n, measured={"throughput": 9.0 - n}) for n in range(3)]
    pages = {}
    for costs in (("throughput",), ("flops", "throughput")):
        objectives = {"top1": "maximize", **{cost: COSTS[cost].direction for cost in costs}}
        made = run_of(tmp_path, *trials, space={**SPACE, "objectives": objectives})
        pages[costs] = render_pages(replace(made, baselines=tuple(known)), b"").html
    assert "stars are the baselines" not in pages["throughput",]
    assert "stars are the baselines" in pages["flops", "throughput"]
    assert pages["flops", "throughput"].count("Below the axis: 1 baseline.") == 1


def test_units_of_measured_costs_stand_in_the_heads(tmp_path: Path) -> None:
    """A row of the page has no room for them beside the network."""
    pages = render_pages(run(tmp_path), b"")
    assert '<th scope="col" class="number">Peak memory,<br>MB</th>' in pages.html
    assert 'data-label="Latency, ms">2.00</td>' in pages.html
    assert " latency, ms | peak memory, MB |" in pages.markdown
    assert " 2.00 | 1.50 |" in pages.markdown


def test_a_model_file_lists_what_was_measured(tmp_path: Path) -> None:
    measured = {"latency_ms": 2.0, "peak_memory_mb": 1.5, "throughput": 900.0}
    one = trial(0, 50.0, measured=measured, measured_on="a card")
    text = config_text(run_of(tmp_path, one), one, on_front=True)
    assert "2.00 ms latency, 1.50 MB peak memory and 900 images/s throughput on a card." in text
