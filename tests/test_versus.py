"""The comparison with the baselines, on cases whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.runs import ENVIRONMENT, reference, run_of, trial
from vitnas.noise import Expected, binomial_error
from vitnas.records import BaselineRecord, Outcome
from vitnas.run import Run
from vitnas.versus import counting, versus

PATH = Path("results/small")


def baseline(family: str, flops: int, top1: float, test: float | None = None, **more: Any) -> Any:
    facts = {"outcome": Outcome.COMPLETE, "curve": (top1,), "test_top1": test} | more
    return BaselineRecord(network=reference(family), flops=flops, **facts)


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


def test_without_test_scores_the_luck_of_the_best_is_taken_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search of 16 networks on 184 images had been 9.6 points above four baselines by the score
    of its luckiest network, which was expected to have six points less."""
    run = run_with(baseline("plain", 10_000, 60.0), baseline("plain", 1_000_000, 60.0))
    (cheap, lucky, rest) = run.trials
    known = (cheap, replace(lucky, expected=Expected(74.0, 1.5)), rest)
    monkeypatch.setattr("vitnas.run.expecting", lambda *_: known)
    found = versus(run)
    assert found is not None
    assert not found.on_test
    assert found.points == pytest.approx((0 + 14) / 2)


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


PLAIN = baseline("plain", 10_000, 55.0, 54.0)
WEAK = baseline("weak", 1_000_000, 5.0, 5.0)


def seeded(by: float) -> Run:
    """A run whose front has two replicates each, on test `by` points above and below."""
    once = run_with(PLAIN, WEAK)
    trials = (
        replace(t, replicates=t.trainings * 2, test_replicates=(test + by, test - by))
        for t in once.trials
        if (test := t.test_top1) is not None
    )
    return replace(once, trials=(*trials, once.trials[-1]))


def test_the_error_of_seeds_comes_on_top_of_that_of_images_and_shrinks_by_trainings() -> None:
    once, again = versus(run_with(PLAIN, WEAK)), versus(seeded(3.0))
    assert once is not None
    assert again is not None
    assert (once.degrees, once.trainings, again.trainings) == (None, (1, 1), (1, 3))
    assert again.points == pytest.approx(once.points)
    shares = ((58.0, 0.5, 3), (78.0, 0.5, 3), (54.0, 1.0, 1))
    variances = {top1: binomial_error(top1, 10_000) ** 2 for top1, _, _ in shares}
    pooled = 18 * (1 / variances[58.0] + 1 / variances[78.0]) / 4
    seeds = sum(w**2 * pooled * variances[top1] / n for top1, w, n in shares)
    images = sum(w**2 * variances[top1] for top1, w, _ in shares)
    assert again.error == pytest.approx(sqrt(images + seeds))
    assert again.degrees == pytest.approx(4 * ((images + seeds) / seeds) ** 2)
    half = (again.interval[1] - again.interval[0]) / 2
    assert half > 1.97 * again.error, "few degrees of freedom: Student's t is wider"


def test_a_repeated_baseline_counts_with_the_mean_of_its_trainings() -> None:
    lucky = baseline("lucky", 10_000, 70.0, 60.0, replicates=(40.0,), test_replicates=(40.0,))
    found = versus(run_with(lucky, baseline("fair", 10_000, 60.0, 54.0)))
    assert found is not None
    assert found.points == pytest.approx(58 - 54), "55 by its mean, so `fair` is chosen"


def test_scatter_on_the_scoring_split_is_what_replicates_without_test_scores_tell() -> None:
    run = run_with(PLAIN)
    far = tuple(replace(t, replicates=(t.curve[-1] + 9, t.curve[-1] - 9)) for t in run.trials)
    found, calm = versus(replace(run, trials=far)), versus(run)
    assert found is not None
    assert calm is not None
    assert found.on_test
    assert found.trainings == (1, 1)
    assert found.error > 2 * calm.error


def test_the_interval_holds_as_often_as_it_says() -> None:
    """All networks reach 70 %; the images shift each by about a point, the seeds by two."""
    data = ENVIRONMENT["data"] | {"num_test_images": 2100}  # a binomial error of one point
    draw, held, times = np.random.default_rng(0), 0, 300
    for _ in range(times):
        tests = 70 + draw.normal(size=(4, 1)) + 2 * draw.normal(size=(4, 3))
        (own, *more), *members = tests.tolist()
        plain = baseline("plain", 10_000, 55.0, own, test_replicates=tuple(more))
        trials = (
            trial(i, 60.0 + i, 10_000 * 4**i, test_top1=one, test_replicates=tuple(others))
            for i, (one, *others) in enumerate(members)
        )
        environment = ENVIRONMENT | {"data": data}
        found = versus(run_of(PATH, *trials, baselines=(plain,), environment=environment))
        assert found is not None
        low, high = found.interval
        held += low <= 0 <= high
    assert 0.93 * times <= held <= 0.98 * times


def test_the_baselines_that_count_are_those_with_a_share() -> None:
    small, large = baseline("plain", 10_000, 50.0, 9.0), baseline("plain", 900_000, 70.0, 9.0)
    weak, beyond = baseline("weak", 10_000, 40.0, 99.0), baseline("plain", 9_000_000, 99.0, 99.0)
    assert counting(run_with(small, large, weak)) == [small, large]
    assert counting(run_with(small, large, weak, beyond)) == [small, large, beyond]
    assert counting(run_with(beyond)) == []
