"""The front over any objectives, against its definition."""

from __future__ import annotations

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
