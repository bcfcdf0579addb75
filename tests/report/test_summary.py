"""The words and numbers over a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.report.runs import run_of, tree, trial
from vitnas.records import Outcome
from vitnas.report.summary import (
    error_rows,
    key_numbers,
    lead,
    progress_text,
    summary_view,
    title,
)

PATH = Path("results/small")


def test_a_folder_of_another_name_says_the_space_too() -> None:
    assert title(run_of(PATH)) == "small – hybrid_cifar"
    assert title(run_of(Path("results/hybrid_cifar"))) == "hybrid_cifar"


def test_own_images_are_called_by_their_folder() -> None:
    data = {"name": "imagefolder", "root": "/data/my shop photos"}
    run = run_of(Path("run"), trial(0), environment={"data": {"name": "imagefolder"}, "seed": 0})
    assert lead(run).endswith("imagefolder, seed 0.")
    own = replace(run, space={**run.space, "data": data})
    assert lead(own).endswith("my shop photos, seed 0.")


def test_the_best_the_knee_and_the_cheapest_as_far_as_they_differ() -> None:
    trials = [trial(0, 50.0, 10**6), trial(1, 70.0, 2 * 10**6), trial(2, 71.0, 9 * 10**6)]
    labels = [
        *("Best expected top-1", "Knee of the front", "Cheapest on the front"),
        "Time in trainings",
    ]
    assert [key["label"] for key in key_numbers(run_of(PATH, *trials))] == labels
    assert [key["label"] for key in key_numbers(run_of(PATH, *trials[:2]))] == [
        label for label in labels if "Knee" not in label
    ]
    assert len(key_numbers(run_of(PATH, trials[0]))) == 2
    late = [trial(0, 50.0, 10**6), trial(1, 50.5, 2 * 10**6), trial(2, 71.0, 9 * 10**7)]
    assert [key["label"] for key in key_numbers(run_of(PATH, *late))] == [
        *("Best expected top-1", "Knee of the front, cheapest on the front", "Time in trainings")
    ], "no network has two cards"
    assert key_numbers(run_of(PATH)) == []


def test_what_another_run_has_trained_cost_this_one_nothing() -> None:
    run = run_of(
        PATH,
        trial(0, 60.0, 9, taken=True, seconds=100.0),
        trial(1, 70.0, 10, seconds=7.0),
        replicates=(trial(2, 61.0, 9, replicate_of=0, taken=True, seconds=50.0),),
        num_trials=2,
    )
    text = lead(run)
    assert "out of 2 candidates, 1 trained and 1 taken over (2 asked for)." in text
    again = trial(3, 71.0, 10, replicate_of=1)
    assert "1 trained, 1 taken over and 1 replicate" in lead(replace(run, replicates=(again,)))
    (cost,) = [key for key in key_numbers(run) if key["label"] == "Time in trainings"]
    assert (cost["value"], cost["detail"]) == ("7.0 s", "1 training, added up over workers")


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
