"""A cost is one record: what is made of records, for all of them."""

from __future__ import annotations

from math import inf
from pkgutil import resolve_name
from typing import get_args

import pytest

from vitnas.config.costs import (
    COSTS,
    EXACT,
    MEASURED,
    QUALITIES,
    CostKind,
    amount,
    cost_of,
    directions_of,
    log_cost,
    measured_with,
    quality_of,
)
from vitnas.config.objectives import Limits, Objectives
from vitnas.records import Outcome, TrialRecord


def test_a_space_file_knows_every_cost_and_its_direction() -> None:
    assert list(Limits.model_fields) == list(COSTS)
    ways = {name: field.annotation for name, field in Objectives.model_fields.items()}
    assert list(ways) == [*QUALITIES, *COSTS]
    for kind in COSTS.values():
        (literal, _) = get_args(ways[kind.name])
        assert get_args(literal) == (kind.direction,)


@pytest.mark.parametrize("kind", COSTS.values(), ids=list(COSTS))
def test_a_record_is_whole(kind: CostKind) -> None:
    assert all((kind.name, kind.head, kind.noun, kind.best, kind.axis))
    assert kind.is_measured is (kind.name in MEASURED) is (kind.name not in EXACT)
    assert bool(kind.unit) is kind.is_measured
    assert not kind.unit or f"({kind.unit})" in kind.axis
    assert kind.batch == 1 or f"batches of {kind.batch} " in kind.axis
    if kind.measured_by is not None:
        assert callable(resolve_name(kind.measured_by))


def test_more_is_better_where_a_cost_is_maximised() -> None:
    assert directions_of(["flops", "throughput"]) == ["maximize", "minimize", "maximize"]
    assert log_cost("flops", 2.0) < log_cost("flops", 3.0)
    assert log_cost("throughput", 2.0) > log_cost("throughput", 3.0)
    fast = TrialRecord(0, outcome=Outcome.COMPLETE, flops=7, measured={"throughput": 100.0})
    assert fast.minimized(["flops", "throughput"]) == (7.0, -100.0)
    assert fast.costs(["flops", "throughput"]) == (7.0, 100.0)
    assert cost_of(fast, "latency_ms") is None


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("flops", 41_200_000, "41.2 M"),
        ("latency_ms", 0.53, "0.530 ms"),
        ("peak_memory_mb", 1234.5, "1,234 MB"),
        ("throughput", 3283.49, "3,283 images/s"),
        ("throughput", inf, "inf images/s"),
    ],
)
def test_amounts(name: str, value: float, text: str) -> None:
    assert amount(name, value) == text


def test_one_pass_of_one_image_tells_all_that_it_can() -> None:
    assert measured_with(()) == ()
    assert measured_with(["latency_ms"]) == ("latency_ms", "peak_memory_mb")
    assert measured_with(["throughput"]) == ("latency_ms", "peak_memory_mb", "throughput")
    assert "latency_onnx_ms" in measured_with(["latency_onnx_ms"]), "an export is not for nothing"


def test_the_accuracy_of_a_stored_space() -> None:
    assert quality_of({"objectives": {"top1_int8": "maximize", "flops": "minimize"}}) == "top1_int8"
    assert quality_of({"objectives": {"top1": "maximize"}}) == quality_of({}) == "top1"
