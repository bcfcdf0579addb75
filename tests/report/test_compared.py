"""Runs beside each other: what is refused, what is told, and by how much fronts differ."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.special import stdtrit

from tests.report.runs import ENVIRONMENT, SPACE, run_of, trial
from tests.report.test_effects import run as made_up
from vitnas.errors import RunError
from vitnas.noise import binomial_error, measure
from vitnas.records import Outcome
from vitnas.report.compared import MOST, check_folders, compare
from vitnas.run import Run
from vitnas.sessions import Pruner, Session

A, B = Path("results/a"), Path("results/b")


def small(path: Path, better: float = 0.0, **more: Any) -> Run:
    trials = [trial(n, 60.0 + 5 * n + better, 10**6 * 2**n) for n in range(4)]
    return run_of(path, *trials, **more)


def told(**data: Any) -> dict[str, Any]:
    environment = deepcopy(ENVIRONMENT)
    environment["data"] |= data
    return environment


def test_a_front_that_is_better_everywhere_is_ahead_by_that_much() -> None:
    found = compare([small(A, 3.0), small(B)])
    (gap,) = found.gaps
    assert (gap.one, gap.other) == ("a", "b")
    assert gap.points == pytest.approx(3.0, abs=0.01)
    assert gap.ahead == 1.0
    assert (gap.low, gap.high) == (10**6, 8 * 10**6)
    assert gap.interval is not None
    assert gap.interval[0] < 3.0 < gap.interval[1]
    assert gap.test is None


def test_the_other_way_round_is_the_same_with_the_other_sign() -> None:
    (gap,) = compare([small(A, 1.0), small(B)]).gaps
    (back,) = compare([small(B), small(A, 1.0)]).gaps
    assert back.points == pytest.approx(-gap.points)
    assert back.ahead == pytest.approx(0.0)


def test_nothing_is_between_two_members_of_a_front() -> None:
    """The second front is at 50 up to its last network; a line between the two would be above."""
    flat = run_of(B, trial(0, 50.0, 10**6), trial(1, 80.0, 4 * 10**6))
    one = run_of(A, trial(0, 50.0, 10**6), trial(1, 40.0, 4 * 10**6))
    (gap,) = compare([one, flat]).gaps
    assert gap.points == pytest.approx(0.0, abs=1e-9)


def test_the_interval_knows_the_noise_of_both() -> None:
    """Two runs of the same networks with other luck: 0 is inside, and it shrinks with images."""
    widths = []
    for images in (300, 4000):
        one, other = (replace(made_up(40, seed, images), path=Path(f"r{seed}")) for seed in (0, 1))
        (gap,) = compare([one, other]).gaps
        assert gap.interval is not None
        assert gap.interval[0] < gap.points < gap.interval[1]
        widths.append(gap.interval[1] - gap.interval[0])
    assert widths[1] < widths[0] / 2


def test_two_runs_that_are_alike_have_independent_luck() -> None:
    """Their draws begin alike: without another order they would cancel."""
    (gap,) = compare([small(A), small(B)]).gaps
    assert gap.interval is not None
    assert gap.points == pytest.approx(0.0)
    assert gap.interval[1] - gap.interval[0] > 1.0


def test_test_scores_are_compared_where_both_have_them() -> None:
    def tested(path: Path, gap: float) -> Run:
        return run_of(path, trial(0, 60.0, test_top1=58.0 + gap))

    (gap,) = compare([tested(A, 2.0), tested(B, 0.0)]).gaps
    assert gap.test is not None
    points, low, high = gap.test
    assert points == pytest.approx(2.0)
    error = (2 * 0.59 * 0.41 / 10_000) ** 0.5 * 100
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.02)
    (blind,) = compare([tested(A, 2.0), run_of(B, trial(0, 60.0))]).gaps
    assert blind.test is None


def test_with_few_replicates_the_interval_of_test_scores_is_students() -> None:
    """One network was trained twice: one degree of freedom tells the scatter over seeds."""
    twice: dict[str, Any] = {
        "replicates": (60.0,), "test_top1": 59.0, "test_replicates": (61.0,)
    }  # fmt: skip
    one, other = run_of(A, trial(0, 60.0, **twice)), run_of(B, trial(0, 60.0, test_top1=58.0))
    (gap,) = compare([one, other]).gaps
    assert gap.test is not None
    points, low, high = gap.test
    seeds = measure([(59.0, 61.0)], 10_000).without_prior
    assert seeds is not None
    images = binomial_error(60.0, 10_000) ** 2 + binomial_error(58.0, 10_000) ** 2
    scatter = seeds.error(60.0, 2) ** 2 + seeds.error(58.0) ** 2
    error, degrees = (images + scatter) ** 0.5, (1 + images / scatter) ** 2
    assert 1 < degrees < 2
    assert points == pytest.approx(2.0)
    assert high - points == pytest.approx(stdtrit(degrees, 0.975) * error)
    assert points - low == pytest.approx(high - points)


def test_three_runs_have_three_gaps_and_one_corner() -> None:
    found = compare([small(A, 2.0), small(B, 1.0), small(Path("results/c"))])
    assert [(gap.one, gap.other) for gap in found.gaps] == [("a", "b"), ("a", "c"), ("b", "c")]
    shares = [side.share for side in found.sides]
    assert shares[0] == pytest.approx(1.0)
    assert shares[0] > shares[1] > shares[2]  # type: ignore[operator]
    assert [len(side.curve) for side in found.sides] == [4, 4, 4]


def test_runs_of_one_name_are_told_by_their_paths() -> None:
    found = compare([small(Path("x/run")), small(Path("y/run"))])
    assert [side.name for side in found.sides] == ["x/run", "y/run"]


def test_runs_on_all_images_and_on_some_of_them_can_be_compared() -> None:
    whole = {"num_images": 9, "num_classes": 2, "digest": "aa", "listed": "bb"}
    some = {"num_classes": 2, "listed": "bb"}
    sides = (
        small(A, environment=told(fingerprint=whole)),
        small(B, environment=told(fingerprint=some)),
    )
    assert len(compare(sides).sides) == 2


REFUSED = {
    "twice": (small(A), small(Path("results/../results/a")), "is given twice"),
    "objectives": (
        small(A),
        small(B, space=SPACE | {"objectives": {"top1": "maximize", "num_params": "minimize"}}),
        "results/b: its objectives are top-1, parameters, those of results/a top-1, FLOPs",
    ),
    "data": (small(A), small(B, environment=told(name="digits")), "data digits, not cifar10"),
    "classes": (small(A), small(B, environment=told(num_classes=100)), "classes 100, not 10"),
    "images": (
        small(A, environment=told(fingerprint={"digest": "aa"})),
        small(B, environment=told(fingerprint={"digest": "bb"})),
        "other images than results/a",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_compared_is_refused_in_one_line(case: str) -> None:
    one, other, words = REFUSED[case]
    with pytest.raises(RunError) as refused:
        compare([one, other])
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_too_many_are_refused_before_anything_is_read() -> None:
    with pytest.raises(RunError, match=f"at most {MOST}"):
        check_folders([Path(f"r{n}") for n in range(MOST + 1)])


def test_what_limits_the_comparison_is_told() -> None:
    proxy = SPACE | {"proxy": {"epochs": 3}}
    other = small(B, environment=told(num_val_images=500), space=proxy, num_trials=9)
    text = " ".join(compare([small(A), other]).notes)
    assert "do not score on the same part of the images" in text
    assert "The short trainings differ" in text
    assert "has not ended" in text
    assert "do not contain the scatter over seeds" in text
    plain = " ".join(compare([small(A), small(B)]).notes)
    assert "trainings differ" not in plain
    assert "has not ended" not in plain


def test_trainings_of_both_runs_are_told() -> None:
    """Network and curve are equal: one run started from the other, or both have one seed."""
    one, other = small(A), small(B)
    assert "4 trainings are part of several runs" in " ".join(compare([one, other]).notes)
    assert "part of several" not in " ".join(compare([one, small(B, 0.1)]).notes)
    few = run_of(B, *one.trials[:1], *small(B, 0.1).trials[1:])
    text = " ".join(compare([one, few]).notes)
    assert "1 training is part of several runs, as after --start-from, and counts as" in text


def test_what_differs_is_listed_by_its_address() -> None:
    other = small(B, space=SPACE | {"limits": {"flops": {"max": 5}}}, environment=told())
    other = replace(other, environment=other.environment.model_copy(update={"seed": 9}))
    differing = compare([small(A), other]).differing
    assert differing["seed"] == ("3", "9")
    assert differing["space.limits.flops.max"] == ("300000000", "5")
    assert differing["space.limits.num_params.max"] == ("8000000", "–")
    assert "sampler" not in differing
    assert compare([small(A), small(B)]).differing == {}


def test_what_a_run_does_not_say_is_a_dash_and_options_are_words() -> None:
    pruned = small(A)
    session = Session(pruner=Pruner.model_validate({"name": "curve", "confidence": 0.98}))
    pruned = replace(
        pruned, environment=pruned.environment.model_copy(update={"sessions": [session]})
    )
    differing = compare([pruned, small(B)]).differing
    assert differing["pruner"] == ("curve, confidence 0.98", "–")
    assert differing["git revision"] == ("–", "40a507c81f2e")


def test_empty_and_failed_runs_have_no_gap() -> None:
    for other in (run_of(B), run_of(B, trial(0, None, outcome=Outcome.FAILED))):
        found = compare([small(A), other])
        assert found.gaps == ()
        assert found.sides[1].share is None
    apart = run_of(B, trial(0, 60.0, 10**9))
    assert compare([small(A), apart]).gaps == ()
    (gap,) = compare([run_of(A, trial(0, 60.0)), run_of(B, trial(0, 50.0))]).gaps
    assert gap.points == pytest.approx(10.0)
    (unknown,) = compare([small(A, environment={}), small(B, environment={})]).gaps
    assert unknown.interval is None
