"""The head of a report: title, two sentences, key numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.report.runs import run_of, trial
from vitnas.report.lead import (
    key_numbers,
    lead,
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
