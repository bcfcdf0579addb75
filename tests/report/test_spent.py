"""Hypervolume over epochs and seconds, and what chance reached."""

from __future__ import annotations

from copy import deepcopy
from math import log
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import ENVIRONMENT, invented_run, run_of, trial
from vitnas.records import Outcome, TrialRecord
from vitnas.report.figures import epochs_figure, gpu_figure, seconds_figure
from vitnas.report.page import render_pages
from vitnas.report.progress import corner_of, volume_curve
from vitnas.report.spent import (
    per_network,
    random_share,
    random_start,
    spent_curve,
    spent_text,
    step_rows,
)

PATH = Path("results/small")


def proposed_by(*samplers: str) -> dict[str, Any]:
    told = deepcopy(ENVIRONMENT)
    told["sessions"] = [told["sessions"][0] | {"sampler": name} for name in samplers]
    return told


def rising(number: int, **more: Any) -> list[TrialRecord]:
    return [trial(n, 50.0 + n, 1_000_000 * (n + 1), **more) for n in range(number)]


def test_two_trials_by_hand() -> None:
    """A stopped training is paid, and adds nothing; the worst network is the corner."""
    stopped = trial(1, 20.0, 10**6, outcome=Outcome.STOPPED, seconds=2.5)
    worst = trial(3, 10.0, 30_000_000, ended=9.0)
    run = run_of(PATH, trial(0, 30.0, 30_000_000), stopped, trial(2, 50.0, 30_000_000), worst)
    first, second, third, last = spent_curve(run)
    assert last.volume == third.volume
    assert (first.number, first.epochs, first.seconds) == (0, 3, 12.5)
    assert (second.epochs, second.seconds, second.volume) == (6, 15.0, first.volume)
    assert first.volume == pytest.approx(20 * log(10))
    assert third.volume == pytest.approx(40 * log(10))
    assert "took 12 epochs (40 s); 95 % was reached after 9 epochs (28 s)" in spent_text(run, None)


def test_it_ends_where_the_curve_over_trials_ends() -> None:
    run = invented_run(PATH, 120)
    volumes = [one.volume for one in spent_curve(run)]
    assert volumes == sorted(volumes)
    shares = [share for _, share in volume_curve(run)]
    assert volumes[-1] * shares[0] == pytest.approx(min(value for value in volumes if value > 0))
    assert spent_curve(run)[-1].epochs == sum(t.epochs for t in run.trials if t.outcome.is_trial)


def test_trainings_count_in_the_order_in_which_they_ended() -> None:
    run = run_of(PATH, trial(0, 50.0, ended=20.0), trial(1, 60.0, ended=10.0))
    assert [one.number for one in spent_curve(run)] == [1, 0]


def test_what_was_taken_over_costs_nothing() -> None:
    run = run_of(PATH, trial(0, 50.0, taken=True, origin="results/a, trial 3"), trial(1, 40.0))
    first, last = spent_curve(run)
    assert (first.epochs, first.seconds) == (0, 0.0)
    assert first.volume > 0
    assert last.epochs == 3


def test_a_time_that_is_not_known_ends_the_times() -> None:
    run = run_of(PATH, *rising(3), trial(3, 80.0, seconds=None))
    assert spent_curve(run)[-1].seconds is None
    assert seconds_figure(run, None) is None
    assert epochs_figure(run, None) is not None
    assert "(" not in spent_text(run, None).partition(";")[0]


def on_a_share_of(gpus: float) -> dict[str, Any]:
    told = deepcopy(ENVIRONMENT)
    told["sessions"] = [told["sessions"][0] | {"gpus_per_trial": gpus}]
    return told


def test_where_a_gpu_was_used_there_are_gpu_hours() -> None:
    trials = [*rising(3), trial(3, 40.0, outcome=Outcome.FAILED, seconds=2.0, gpu_seconds=3.0)]
    run = run_of(PATH, *trials, environment=on_a_share_of(0.5))
    assert [one.gpu_seconds for one in spent_curve(run)] == [6.25, 12.5, 18.75, 21.75]
    figure = gpu_figure(run, None)
    assert figure is not None
    assert figure.layout["xaxis"]["title"]["text"] == "GPU-minutes"
    assert figure.data[0]["x"][-1] == pytest.approx(21.75 / 60, abs=1e-3)
    assert step_rows(run)[0][-1]["gpu"] == f"{18.75 / 3600:.3g}"
    page = render_pages(run, b"").html
    assert 'id="gpu_plot"' in page
    assert "GPU-hours" in page.partition("The hypervolume in numbers")[2].partition("</table>")[0]
    long = run_of(PATH, *rising(3, seconds=36_000.0), environment=on_a_share_of(0.5))
    hours = gpu_figure(long, None)
    assert hours is not None
    assert hours.layout["xaxis"]["title"]["text"] == "GPU-hours"
    assert hours.data[0]["x"] == [5.0, 10.0, 15.0]


def test_without_a_gpu_or_its_share_there_are_none() -> None:
    for told in (on_a_share_of(0.0), ENVIRONMENT):
        run = run_of(PATH, *rising(3), environment=told)
        assert gpu_figure(run, None) is None
        assert {row["gpu"] for row in step_rows(run)[0]} == {""}
        assert 'id="gpu_plot"' not in render_pages(run, b"").html


def test_a_network_takes_the_mean_of_those_trained_to_the_end_here() -> None:
    more = [trial(2, 40.0, outcome=Outcome.STOPPED, seconds=2.0), trial(3, taken=True, seconds=9e9)]
    trials = [trial(0, 50.0, seconds=10.0), trial(1, 60.0, seconds=20.0), *more]
    found = per_network(run_of(PATH, *trials, environment=on_a_share_of(0.5)))
    assert found is not None
    assert (found.seconds, found.gpu_seconds) == (15.0, 7.5)
    assert per_network(run_of(PATH, *more)) is None


def test_the_random_start_of_each_sampler() -> None:
    trials = [*rising(14), trial(14, 40.0, origin="plain_mhsa")]
    expected = {"random": 14, "tpe": 10, "nsga2": 14, "ehvi": None, "mine": None}
    for sampler, number in expected.items():
        assert random_start(run_of(PATH, *trials, environment=proposed_by(sampler))) == number
    assert random_start(run_of(PATH, *trials, environment=proposed_by("tpe", "random"))) is None
    assert random_start(run_of(PATH, environment={})) is None


def test_behind_networks_that_were_given_fewer_are_drawn_at_random() -> None:
    """TPE and NSGA-II count these among the first ones, and ask their models earlier."""
    for more in ({"taken": True}, {}):
        given = [trial(n, 40.0, origin=f"plain {n}", **more) for n in range(8)]
        drawn = [trial(8 + n, 50.0 + n, 1_000_000 * (n + 1)) for n in range(30)]
        for sampler in ("tpe", "nsga2"):
            run = run_of(PATH, *given, *drawn, environment=proposed_by(sampler))
            assert random_start(run) is None
            assert "drawn at random" not in spent_text(run, None)
        run = run_of(PATH, *given, *drawn, environment=proposed_by("random"))
        assert random_start(run) == 30


def test_words_on_chance() -> None:
    def said(sampler: str, number: int) -> str:
        run = run_of(PATH, *rising(number), environment=proposed_by(sampler))
        return spent_text(run, None)

    for sampler, number in (("ehvi", 14), ("tpe", 9)):
        assert "What a random search as long as this run reaches is not known" in said(
            sampler, number
        )
    assert said("random", 9).endswith("This run is a random search.")
    run = run_of(PATH, *rising(20), environment=proposed_by("tpe"))
    curve = spent_curve(run)
    share = curve[9].volume / curve[-1].volume
    found = random_share(run, curve)
    assert found is not None
    assert found == pytest.approx((10, share))
    text = said("tpe", 20)
    assert f"The first 10 trials were drawn at random and reached {100 * share:.0f} %" in text
    figure = epochs_figure(run, None)
    assert figure is not None
    assert figure.data[1]["name"] == "reached by 10 random trials"


def test_one_corner_for_several_runs() -> None:
    """The lowest top-1 and the highest cost of all runs."""
    small = run_of(PATH, trial(0, 50.0), space={}, environment={})
    large = run_of(PATH, trial(0, 20.0, 5_000_000), space={})
    assert corner_of([small, large]) == pytest.approx((-20.0, log(5e6)))
    (one,), (other,) = (spent_curve(run, corner_of([small, large])) for run in (small, large))
    assert one.volume == pytest.approx(30 * log(5))
    assert other.volume == pytest.approx(0.0, abs=1e-6)


def test_empty_and_short_runs_say_nothing() -> None:
    for run in (run_of(PATH), run_of(PATH, trial(0, 50.0)), run_of(PATH, *rising(1))):
        assert spent_text(run, None) == ""
        assert epochs_figure(run, None) is None
    poor = run_of(PATH, trial(0, 5.0), trial(1, 5.0))
    assert spent_text(poor, None) == ""


def test_both_pages_have_it() -> None:
    run = run_of(PATH, *rising(12), environment=proposed_by("ehvi"))
    pages = render_pages(run, b"")
    assert 'id="epochs_plot"' in pages.html
    assert 'id="seconds_plot"' in pages.html
    for page in (pages.html, pages.markdown):
        assert "The trials took 36 epochs (2 min)" in page


def test_the_steps_are_in_a_table() -> None:
    run = run_of(PATH, trial(0, 10.0), trial(1, 30.0), trial(2, 20.0), trial(3, 50.0))
    rows, note = step_rows(run)
    assert [(row["number"], row["epochs"], row["share"]) for row in rows] == [
        ("1", "6", "50.00"),
        ("3", "12", "100.00"),
    ]
    assert rows[0]["seconds"] == "25 s"
    assert note == ""
    assert "The hypervolume in numbers" in render_pages(run, b"").html
    many, left = step_rows(run_of(PATH, *(trial(n, 10 + n / 2) for n in range(151))))
    assert len(many) == 50
    assert many[-1]["share"] == "100.00"
    assert left == "; 100 steps between these are left out"
    assert step_rows(run_of(PATH)) == ([], "")
