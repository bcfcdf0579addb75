"""The line before the first training."""

from __future__ import annotations

import pytest

from vitnas.engine.watch.outlook import outlook


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((2, 60, 0, 2), "starting 2 workers for 60 trainings of 2 epochs"),
        ((2, 60, 32, 2), "starting 2 workers for the last 28 of 60 trainings of 2 epochs"),
        ((1, 1, 0, 3), "starting 1 worker for 1 training of 3 epochs"),
        ((1, None, 0, 1), "starting 1 worker for any number of trainings of 1 epoch"),
        ((1, None, 3, 1), "starting 1 worker for any number of further trainings of 1 epoch"),
        ((2, 60, 60, 2), "all 60 trials have ended"),
        ((2, 24, 60, 2), "all 24 trials have ended"),
        ((2, 1, 1, 2), "the trial has ended"),
    ],
)
def test_it_tells_of_the_trainings_that_are_left(
    arguments: tuple[int, int | None, int, int], expected: str
) -> None:
    assert outlook(*arguments) == expected


def test_the_time_is_that_of_what_is_left_on_as_many_workers_as_have_work() -> None:
    assert outlook(2, 60, 0, 2, seconds=60.0).endswith(", about 30 min in all")
    assert outlook(2, 60, 30, 2, seconds=60.0).endswith(", about 15 min in all")
    assert outlook(4, 61, 60, 2, seconds=180.0).endswith(", about 3 min in all")


def test_baselines_follow_with_their_time() -> None:
    assert outlook(2, 8, 8, 2, num_baselines=1).endswith("have ended, then 1 baseline")
    line = outlook(2, 8, 0, 2, num_baselines=3, baseline_seconds=600.0)
    assert line.endswith("of 2 epochs, then 3 baselines, about 5 min")
