"""The front over any objectives, against its definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vitnas.config.costs import COSTS
from vitnas.records import Outcome, TrialRecord, front_of

FEW = st.integers(1, 4)
RECORDS = st.lists(st.tuples(FEW, FEW, FEW, FEW, st.one_of(st.none(), FEW)), max_size=12)
NAMES = st.sets(st.sampled_from(COSTS), min_size=1)


def record(number: int, numbers: tuple[int | None, ...]) -> TrialRecord:
    top1, flops, num_params, latency, memory = numbers
    return TrialRecord(
        number=number,
        outcome=Outcome.COMPLETE,
        curve=(float(top1 or 0),),
        flops=flops or 0,
        num_params=num_params or 0,
        latency_ms=latency,
        peak_memory_mb=memory,
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
    known = [t for t in trials if all(getattr(t, name) is not None for name in costs)]
    points = {t.number: t.point(costs) for t in known}
    expected = {
        t.number
        for t in known
        if not any(dominates(points[other.number], points[t.number]) for other in known)
        and not any(points[o.number] == points[t.number] for o in known if o.number < t.number)
    }
    members = front_of(trials, costs)
    assert {t.number for t in members} == expected
    assert list(members) == sorted(members, key=lambda t: (*t.costs(costs), t.number))


def test_what_did_not_end_is_on_no_front() -> None:
    one = record(0, (4, 1, 1, 1, 1))
    stopped = TrialRecord(1, Outcome.STOPPED, flops=1, curve=(9.0,))
    assert front_of([one, stopped], ["flops"]) == (one,)
