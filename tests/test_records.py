"""The front over any objectives, against its definition, and by what a run expects."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.runs import ENVIRONMENT, run_of, trial
from vitnas.config.costs import COSTS, MEASURED
from vitnas.errors import ConfigError
from vitnas.records import Outcome, TrialRecord, front_of

FEW = st.integers(1, 4)
MAYBE = st.one_of(st.none(), FEW)
RECORDS = st.lists(st.tuples(FEW, FEW, FEW, *[MAYBE] * len(MEASURED)), max_size=12)
NAMES = st.sets(st.sampled_from(list(COSTS)), min_size=1)


def record(number: int, numbers: tuple[int | None, ...]) -> TrialRecord:
    top1, *costs = numbers
    amounts = {name: cost for name, cost in zip(COSTS, costs, strict=True) if cost is not None}
    return TrialRecord(
        number=number,
        outcome=Outcome.COMPLETE,
        curve=(float(top1 or 0),),
        flops=amounts.pop("flops"),
        num_params=amounts.pop("num_params"),
        measured=amounts,
    )


def dominates(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


@given(RECORDS, NAMES)
def test_the_front_is_what_nothing_dominates(
    table: list[tuple[int | None, ...]], names: set[str]
) -> None:
    """Every choice of costs; of equals the first; what was not measured is on no front."""
    costs = [name for name in COSTS if name in names]
    trials = [record(number, numbers) for number, numbers in enumerate(table)]
    known = [t for t in trials if not any(map(isnan, t.costs(costs)))]
    points = {t.number: t.point(costs) for t in known}
    expected = {
        t.number
        for t in known
        if not any(dominates(points[other.number], points[t.number]) for other in known)
        and not any(points[o.number] == points[t.number] for o in known if o.number < t.number)
    }
    members = front_of(trials, costs)
    assert {t.number for t in members} == expected
    assert list(members) == sorted(members, key=lambda t: (*t.minimized(costs), t.number))


def test_what_did_not_end_is_on_no_front() -> None:
    one = record(0, (4, *[1] * len(COSTS)))
    stopped = TrialRecord(1, outcome=Outcome.STOPPED, flops=1, curve=(9.0,))
    assert front_of([one, stopped], ["flops"]) == (one,)


def test_a_configuration_that_breaks_a_rule_is_told_with_its_trial() -> None:
    trial = TrialRecord(
        7, outcome=Outcome.COMPLETE, config={"stages": [{"token_mixer": "mhsa", "dept": 2}]}
    )
    with pytest.raises(ConfigError, match=r"^trial 7: stages\[0\]\.dept = 2: .*nearest: depth"):
        _ = trial.network


def rising(number: int, lucky: int | None = None) -> tuple[TrialRecord, ...]:
    """Trials whose top-1 rises by 4 points with a tenfold cost; one scores 3 points too much."""
    return tuple(
        trial(n, 80 + 4 * n / number + 3 * (n == lucky), round(1e6 * 10 ** (n / number)))
        for n in range(number)
    )


FEW_IMAGES = {**ENVIRONMENT, "data": {**ENVIRONMENT["data"], "num_val_images": 400}}


def test_a_lucky_score_does_not_push_better_networks_off_the_front() -> None:
    run = run_of(Path("few"), *rising(20, lucky=4), environment=FEW_IMAGES)
    by_score = {t.number for t in front_of(run.trials, ["flops"])}
    members = {t.number for t in run.front}
    assert not by_score & set(range(5, 19)), "the lucky one bars them"
    assert len(members & set(range(10, 20))) >= 5
    assert all(t.top1 == t.trainings[0] for t in run.front), "the score stays what it is"


def test_a_network_that_cannot_be_read_leaves_the_scores_to_rank() -> None:
    trials = list(rising(12))
    trials[3] = replace(trials[3], config={"stages": [{"token_mixer": "no.such:Mixer"}]})
    run = run_of(Path("foreign"), *trials, environment=FEW_IMAGES)
    assert [t.expected for t in run.complete] == [None] * 12
    assert [t.number for t in run.front] == list(range(12))
    assert run.chances
