"""Limits include both ends, and what is not known yet is not outside."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.report.runs import trial
from vitnas.config.objectives import Limits
from vitnas.cost.limits import over_limits


@pytest.mark.parametrize(
    ("flops", "limit", "expected"),
    [
        (1_000_000, {"max": 1e6}, None),
        (1_000_000, {"min": 1e6}, None),
        (2_000_000, {"max": 1e6}, r"flops 2.* is above the limit 1"),
        (500_000, {"min": 1e6}, r"flops 0?\.?5.* is below the limit 1"),
    ],
)
def test_limits_of_flops(flops: int, limit: dict[str, float], expected: str | None) -> None:
    limits = Limits.model_validate({"flops": limit, "latency_ms": {"max": 1.0}})
    network = replace(trial(0), flops=flops)
    assert re.search(expected or "^None$", str(over_limits(network, limits)))
