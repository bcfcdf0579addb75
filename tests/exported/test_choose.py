"""Which network is meant, and what is said when none is."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import t as student

from tests.report.runs import run_of, trial
from vitnas.errors import VitnasError
from vitnas.exported.choose import Target, bound, choose_trial, fitting
from vitnas.noise import Expected
from vitnas.records import Outcome
from vitnas.run import Run


@pytest.fixture
def run() -> Run:
    return run_of(
        Path("results/small"),
        trial(0, 50.0, 1_000_000),
        trial(1, 40.0, 1_500_000),
        trial(2, 70.0, 2_000_000),
        trial(3, 60.0, 900_000, outcome=Outcome.STOPPED),
        trial(4, None, outcome=Outcome.DUPLICATE, duplicate_of=2),
        trial(9, 75.0, 9_000_000),
    )


@pytest.mark.parametrize(
    ("selector", "number"),
    [
        ({"trial": 1}, 1),
        ({"trial": 0}, 0),
        ({"under": "1M"}, 0),
        ({"under": "1.9M"}, 0),
        ({"under": "2M"}, 2),
        ({"under": "1g"}, 9),
        ({"knee": True}, 2),
    ],
)
def test_one_selector_finds_one_trial(run: Run, selector: dict[str, Any], number: int) -> None:
    assert choose_trial(run, **selector).number == number


@pytest.mark.parametrize(
    "selector", [{}, {"trial": 0, "knee": True}, {"trial": 0, "under": "1M"}, {"knee": False}]
)
def test_exactly_one_selector_is_wanted(run: Run, selector: dict[str, Any]) -> None:
    with pytest.raises(VitnasError, match="one of"):
        choose_trial(run, **selector)


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"trial": 8}, "there is no trial 8 (nearest complete trial: 9)"),
        ({"trial": -4}, "there is no trial -4 (nearest complete trial: 0)"),
        ({"trial": 3}, "trial 3 is stopped, not complete (nearest complete trial: 2)"),
        ({"trial": 4}, "trial 4 is the same network as trial 2: use 2"),
        (
            {"under": "999k"},
            "no network has at most 999,000 FLOPs; the closest is trial 0 with 1,000,000 FLOPs",
        ),
        ({"under": "many"}, "--under 'many': must be a number above 0, like 300k, 2M or 1.5G"),
    ],
)
def test_errors_name_what_would_do(run: Run, selector: dict[str, Any], message: str) -> None:
    with pytest.raises(VitnasError) as caught:
        choose_trial(run, **selector)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("selector", [{"trial": 0}, {"under": "1M"}, {"knee": True}])
def test_a_run_without_complete_trials_says_so(selector: dict[str, Any]) -> None:
    stopped = run_of(Path("results/new"), trial(0, outcome=Outcome.STOPPED))
    with pytest.raises(VitnasError, match="no trial is complete yet"):
        choose_trial(stopped, **selector)


@pytest.mark.parametrize(
    ("text", "flops"),
    [("300k", 3e5), ("2M", 2e6), ("1.5G", 1.5e9), (" .5 g ", 5e8), ("1200", 1200.0), ("2e6", 2e6)],
)
def test_a_bound_is_read(text: str, flops: float) -> None:
    assert bound("--under", text) == pytest.approx(flops)


@pytest.mark.parametrize(
    "text", ["", "0", "0M", "-2M", "2 MB", "2MM", "1,5G", "nan", "inf", "1e999"]
)
def test_what_is_no_bound_is_refused(text: str) -> None:
    with pytest.raises(VitnasError, match="must be a number above 0"):
        bound("--under", text)


@pytest.mark.parametrize(
    ("target", "numbers"),
    [
        (Target(), [9, 2, 0, 1]),
        (Target({"flops": 1.7e6}), [0, 1]),
        (Target({"flops": 9e6, "num_params": 30_000}), [2]),
        (Target(min_top1=45.0), [0, 2, 9]),
        (Target({"flops": 9e6}, min_top1=60.0), [2, 9]),
        (Target({"latency_ms": 3.0}), [2]),
        (Target({"throughput": 900.0}), [2]),
    ],
)
def test_all_that_meet_a_target_the_best_first(
    run: Run, target: Target, numbers: list[int]
) -> None:
    measured = {2: {"latency_ms": 2.5, "throughput": 1000.0}, 9: {"latency_ms": 8.0}}
    trials = [
        replace(t, measured=measured.get(t.number, {}), num_params=30_000 + (t.number != 2))
        for t in run.trials
    ]
    measured_run = run_of(run.path, *trials)
    chosen = fitting(measured_run, target)
    assert [trial.number for trial in chosen] == numbers
    assert all(target.is_met(measured_run, trial) for trial in chosen)


def test_a_network_that_answered_nothing_right_is_chosen_among_too() -> None:
    """0 % is a score: of few images in many classes it is a usual one."""
    run = run_of(Path("results/small"), trial(0, 0.0, 1_000_000), trial(1, 12.5, 2_000_000))
    assert [one.number for one in fitting(run, Target())] == [1, 0]
    assert choose_trial(run, under="1M").number == 0


def test_robust_counts_what_a_network_exceeds_almost_surely() -> None:
    unsure = trial(0, 80.0, expected=Expected(80.0, 3.0))
    sure = trial(1, 79.0, expected=Expected(79.0, 0.1))
    run = run_of(Path("r"), unsure, sure)
    assert run.noise is not None
    assert Target().top1(run, unsure) > Target().top1(run, sure)
    robust = Target(is_robust=True)
    below = student.ppf(0.95, run.noise.degrees)
    assert below > 1.7, "few degrees of freedom: more than a normal deviate"
    assert robust.top1(run, sure) == pytest.approx(79.0 - 0.1 * below)
    assert robust.top1(run, unsure) < robust.top1(run, sure)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (Target(min_top1=80.0), "at least 80 % top-1; the closest is trial 9 with 75.00 % top-1"),
        (
            Target({"flops": 1e6}, min_top1=70.0),
            "at most 1,000,000 FLOPs and at least 70 % top-1; the closest is trial 0 with "
            "1,000,000 FLOPs and 50.00 % top-1",
        ),
        (Target({"latency_ms": 1.0}), "latency was not measured: the space's objectives need"),
    ],
)
def test_a_target_nobody_meets_names_the_closest(run: Run, target: Target, message: str) -> None:
    with pytest.raises(VitnasError) as caught:
        fitting(run, target)
    assert message in str(caught.value)


def test_choosing_needs_no_torch() -> None:
    code = "import sys, vitnas.exported.choose; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
