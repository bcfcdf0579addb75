"""The comparison with the baselines, on cases whose answers are known."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from vitnas.noise import binomial_error
from vitnas.records import BaselineRecord, Outcome
from vitnas.report.versus import Scored, difference, places_of, versus
from vitnas.run import Run

PATH = Path("results/small")


def baseline(family: str, flops: int, top1: float, test: float | None = None, **more: Any) -> Any:
    facts = {"outcome": Outcome.COMPLETE, "curve": (top1,), "test_top1": test} | more
    return BaselineRecord(family=family, width=8, flops=flops, **facts)


def run_with(*baselines: BaselineRecord, **more: Any) -> Run:
    """A front of 60 % from 10 k and 80 % from 100 k FLOPs; on test 2 points less."""
    trials = (
        trial(0, 60.0, 10_000, test_top1=58.0),
        trial(1, 80.0, 100_000, test_top1=78.0),
        trial(2, 70.0, 1_000_000),
    )
    return run_of(PATH, *trials, baselines=baselines, **more)


def test_the_mean_is_over_log_flops_and_each_side_offers_its_best_so_far() -> None:
    found = versus(
        run_with(baseline("plain", 10_000, 55.0, 54.0), baseline("tall", 1_000_000, 83.0, 81.0))
    )
    assert found is not None
    assert (found.low, found.high) == (10_000, 1_000_000)
    # 10 k to 100 k: 58 - 54; 100 k to 1 M: 78 - 54; half of the logs each
    assert found.points == pytest.approx((4 + 24) / 2)
    assert found.share == 1.0
    assert found.ahead == ()
    errors = [binomial_error(top1, 10_000) / 2 for top1 in (58.0, 78.0)]
    expected = sqrt(errors[0] ** 2 + errors[1] ** 2 + binomial_error(54.0, 10_000) ** 2)
    assert found.error == pytest.approx(expected)
    assert found.on_test
    assert found.is_sure


def test_a_family_could_be_had_at_any_width() -> None:
    found = versus(
        run_with(baseline("plain", 10_000, 50.0, 54.0), baseline("plain", 1_000_000, 90.0, 58.0))
    )
    assert found is not None
    assert found.points == pytest.approx((58 + 78) / 2 - 56)


def test_a_network_is_chosen_on_the_scoring_split_and_compared_on_test() -> None:
    lucky = baseline("lucky", 10_000, 90.0, 50.0)
    found = versus(run_with(lucky, baseline("fair", 20_000, 70.0, 99.0)))
    assert found is not None
    assert found.points == pytest.approx(8.0)  # 58 - 50, though `fair` is better on test


def test_a_family_that_is_ahead_is_named_with_its_range() -> None:
    found = versus(
        run_with(
            baseline("plain", 10_000, 50.0, 50.0),
            baseline("wide", 30_000, 70.0, 70.0),
            baseline("plain", 1_000_000, 75.0, 75.0),
        )
    )
    assert found is not None
    ((name, *ends),) = found.ahead
    assert name == "wide"
    assert ends == pytest.approx([30_000, 100_000], rel=0.02)
    assert 0 < found.share < 1


def test_without_test_scores_the_scoring_split_counts() -> None:
    found = versus(run_with(baseline("plain", 10_000, 60.0)))
    assert found is not None
    assert not found.on_test
    assert found.num_images == 5000
    assert (found.points, found.is_sure) == (0.0, False)


@pytest.mark.parametrize(
    "baselines",
    [
        (),
        (baseline("plain", 10_000, 50.0, outcome=Outcome.DIVERGED),),
        (baseline("plain", 2_000_000, 90.0, 90.0),),
        (baseline("plain", 0, 90.0, 90.0),),
    ],
    ids=["none", "none complete", "no common FLOPs", "FLOPs unknown"],
)
def test_what_cannot_be_compared_is_not(baselines: tuple[BaselineRecord, ...]) -> None:
    assert versus(run_with(*baselines)) is None


def test_an_empty_front_is_not_compared() -> None:
    assert versus(run_of(PATH, baselines=(baseline("plain", 10, 50.0),))) is None


def test_an_unknown_number_of_images_leaves_no_error_to_tell() -> None:
    environment = ENVIRONMENT | {"data": {"name": "cifar10"}}
    assert versus(run_with(baseline("plain", 10_000, 60.0, 60.0), environment=environment)) is None


def test_more_scatter_between_trainings_is_more_error() -> None:
    calm = versus(run_with(baseline("plain", 10_000, 55.0, 54.0)))
    trials = tuple(
        trial(number, top1, flops, test_top1=top1 - 2, replicates=(top1 + 9, top1 - 9))
        for number, (top1, flops) in enumerate([(60.0, 10_000), (80.0, 100_000)])
    )
    shaky = versus(run_of(PATH, *trials, baselines=(baseline("plain", 10_000, 55.0, 54.0),)))
    assert calm is not None
    assert shaky is not None
    assert shaky.error > 2 * calm.error


def test_one_number_of_flops_is_a_range_of_its_own() -> None:
    (only,) = places_of([Scored(5, 60, 60)], [Scored(5, 50, 50, "plain")], 5, 5)
    assert only.gain == 10
    points, error = difference([only], lambda top1: 3.0)
    assert (points, error) == pytest.approx((10, sqrt(18)))
