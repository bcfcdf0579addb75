"""A chosen network: its neighbours, how sure the choice is, and what more trainings would tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.runs import ENVIRONMENT, SPACE, run_of, trial
from vitnas.exported.choose import Target
from vitnas.noise import Expected
from vitnas.report.choice import choose
from vitnas.run import Run


@pytest.fixture
def run() -> Run:
    return run_of(
        Path("results/small"),
        trial(0, 60.0, 1_000_000),
        trial(1, 70.0, 2_000_000),
        trial(2, 71.0, 3_000_000),
        trial(3, 50.0, 3_500_000),
        trial(4, 80.0, 4_000_000),
        trial(5, 90.0, 8_000_000),
    )


def test_the_neighbours_are_the_front_s_on_both_sides(run: Run) -> None:
    found = choose(run, Target({"flops": 3.2e6}))
    assert found.trial.number == 2
    assert [one.trial.number for one in found.neighbours] == [0, 1, 4, 5]
    cheaper, dearer = found.neighbours[1], found.neighbours[2]
    assert cheaper.points < 0 < dearer.points
    assert cheaper.flops == pytest.approx(2 / 3)
    assert dearer.better is not None
    assert dearer.better > 0.99
    assert cheaper.better is not None
    assert 0.05 < cheaper.better < 0.5


def test_the_neighbours_are_the_nearest_by_flops_whatever_the_front_is_sorted_by() -> None:
    trials = [
        trial(n, top1, flops * 1_000_000, measured={"latency_ms": latency})
        for n, (top1, flops, latency) in enumerate(
            [(60.0, 7, 1.0), (70.0, 1, 2.0), (75.0, 8, 3.0), (80.0, 4, 4.0), (85.0, 2, 5.0),
             (90.0, 3, 6.0), (95.0, 6, 7.0), (99.0, 5, 8.0)]
        )
    ]  # fmt: skip
    space = SPACE | {"objectives": {"top1": "maximize", "latency_ms": "minimize"}}
    run = run_of(Path("results/small"), *trials, space=space)
    assert [one.number for one in run.front] == list(range(8))
    found = choose(run, Target({"flops": 4.0e6}))
    assert found.trial.flops == 3_000_000
    millions = [round(one.trial.flops / 1e6) for one in found.neighbours]
    assert millions == [1, 2, 4, 5]


def test_rivals_are_those_that_may_be_the_best_within_the_target(run: Run) -> None:
    found = choose(run, Target({"flops": 3.2e6}))
    assert [one.number for one in found.rivals] == [2, 1]
    assert found.chance == found.rivals[0].chance
    assert sum(one.chance for one in found.rivals) == pytest.approx(1.0, abs=0.01)
    assert found.outlook is not None


def test_a_clear_winner_has_no_rivals_and_needs_no_further_training(run: Run) -> None:
    found = choose(run, Target())
    assert (found.trial.number, len(found.rivals), found.outlook) == (5, 1, None)
    assert found.chance is not None
    assert found.chance > 0.99


def test_with_a_least_top1_the_cheapest_is_chosen_and_its_chance_is_to_reach_it(run: Run) -> None:
    found = choose(run, Target(min_top1=69.9))
    assert found.trial.number == 1
    assert found.chance == pytest.approx(0.55, abs=0.05)
    assert not found.rivals


def test_without_the_number_of_images_nothing_is_said_of_chances() -> None:
    data = {**ENVIRONMENT["data"], "num_val_images": None}
    known = run_of(Path("r"), trial(0), trial(1, 60.0), environment={**ENVIRONMENT, "data": data})
    found = choose(known, Target())
    assert (found.chance, found.rivals, found.outlook) == (None, (), None)


def test_a_robust_choice_is_among_its_rivals() -> None:
    """It has a lower expected top-1 than the other one, and a much smaller error."""
    known = [(80.0, 3.0), (79.0, 0.1)]
    trials = [trial(n, one[0], expected=Expected(*one)) for n, one in enumerate(known)]
    run = run_of(Path("r"), *trials)
    run.__dict__["complete"] = tuple(trials)
    found = choose(run, Target(is_robust=True))
    assert found.trial.number == 1
    assert {one.number for one in found.rivals} == {0, 1}
    assert found.chance == next(one.chance for one in found.rivals if one.number == 1)
