"""What a network may cost: names, order, and how an amount is written. Plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, log
from typing import Any, Literal

from vitnas.config.notation import human

EXACT = ("flops", "num_params")
"""Costs that follow from the configuration."""
MEASURED = ("latency_ms", "peak_memory_mb")
"""Costs that are measured on the device, before the first epoch."""
COSTS = EXACT + MEASURED
"""All of them, in the one order in which values are stored."""
DEFAULT_COSTS = ("flops",)
HEADS = {
    "flops": "FLOPs",
    "num_params": "params",
    "latency_ms": "latency",
    "peak_memory_mb": "memory",
}
"""Short heads of columns."""
_UNITS = {"latency_ms": "ms", "peak_memory_mb": "MB"}


def costs_of(space: Any) -> tuple[str, ...]:
    """The costs among the objectives of a stored space; FLOPs where it does not say."""
    named = space.get("objectives") if isinstance(space, Mapping) else None
    if not isinstance(named, Mapping):
        return DEFAULT_COSTS
    return tuple(name for name in COSTS if named.get(name) is not None) or DEFAULT_COSTS


def directions_of(costs: Sequence[str]) -> list[Literal["maximize", "minimize"]]:
    """Optuna's directions of top-1 and `costs`."""
    return ["maximize", *(["minimize"] * len(costs))]  # type: ignore[list-item]


def log_cost(value: float) -> float:
    """ln of a cost, in which costs are compared; 0 for what costs nothing."""
    return log(value) if value > 0 else 0.0


def amount(name: str, value: float) -> str:
    """A cost as people read it: `41.2 M` for counts, `0.530 ms`, `1.20 MB`."""
    if name not in _UNITS:
        return human(value)
    is_whole = not isfinite(value) or abs(value) >= 100 or value == 0
    return f"{f'{value:,.0f}' if is_whole else f'{value:#.3g}'} {_UNITS[name]}"
