"""The words and numbers over a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.report.runs import run_of, tree, trial
from vitnas.records import Outcome
from vitnas.report.summary import error_rows, progress_text, summary_view

PATH = Path("results/small")


def test_the_same_error_is_one_row_with_its_trials() -> None:
    failed = [
        trial(number, None, outcome=Outcome.FAILED, error="worker\n lost") for number in range(8)
    ]
    other = trial(8, None, outcome=Outcome.OOM, error="no memory")
    refused = trial(9, None, outcome=Outcome.REFUSED, error="too many FLOPs")
    assert error_rows(run_of(PATH, other, *failed, refused)) == [
        {"message": "worker lost", "trials": "0, 1, 2, 3, 4, 5 and 2 more"},
        {"message": "no memory", "trials": "8"},
    ]


def test_when_the_front_was_nearly_what_it_is() -> None:
    assert progress_text(run_of(PATH, trial(0))) == ""
    trials = [trial(0, 50.0, 10**6), trial(1, 90.0, 10**6), trial(2, 40.0, 10**6)]
    text = progress_text(run_of(PATH, *trials))
    assert text == (
        "95 % of the area under the final front was reached after 2 complete trials, 99 % after 2, "
        "of 3."
    )


def test_one_complete_trial_is_no_plural() -> None:
    trials = [trial(0, 90.0, 10**6), trial(1, 50.0, 10**6)]
    assert "after 1 complete trial, 99 % after 1, of 2" in progress_text(run_of(PATH, *trials))


def test_a_gain_within_the_noise_is_marked_as_unsure() -> None:
    """Of 5,000 images: the error of a difference is about a point."""
    trials = [trial(0, 60.0, 10**6), trial(1, 60.3, 2 * 10**6), trial(2, 80.0, 3 * 10**6)]
    rows = summary_view(run_of(PATH, *trials))["rows"]
    assert [row["unsure"] for row in rows] == [False, True, False]


def test_networks_beside_the_front_are_told_as_briefly_as_its_own() -> None:
    """What all of them have is left out in both tables."""
    again: dict[str, Any] = {"replicates": (60.2,)}
    trials = [trial(0, 60.0, 10**6, **again), trial(1, 59.9, 2 * 10**6, **again)]
    trials += [trial(2, 80.0, 3 * 10**6, config=tree("mhsa"))]
    view = summary_view(run_of(PATH, *trials))
    (other,) = view["others"]
    assert other["number"] == 1
    assert other["network"] == view["rows"][0]["network"]


def test_the_command_to_export_names_the_knee_and_is_quoted() -> None:
    view = summary_view(run_of(Path("my runs/a"), trial(0)))
    assert view["export_command"] == "vitnas export 'my runs/a' --trial 0 --to my_network"
