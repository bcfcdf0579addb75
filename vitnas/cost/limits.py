"""A space's limits, checked against what is known of a network's costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from vitnas.config.costs import COSTS, amount

if TYPE_CHECKING:
    from vitnas.config.space import Limits


class Priced(Protocol):
    """Whatever knows what a network costs."""

    @property
    def flops(self) -> int: ...
    @property
    def num_params(self) -> int: ...


def over_limits(cost: Priced, limits: Limits) -> str | None:
    """Why a network of this cost is outside the limits, in one line, or None.

    Args:
        cost: FLOPs (multiply-adds of one image) and trainable parameters, e.g. a `Cost`; also
            `latency_ms` and `peak_memory_mb` once they are measured. What is not known yet is not
            outside.
        limits: both ends included.
    """
    for name in COSTS:
        value, bounds = getattr(cost, name, None), getattr(limits, name)
        if value is None:
            continue
        if bounds.max is not None and value > bounds.max:
            return f"{name} {amount(name, value)} is above the limit {amount(name, bounds.max)}"
        if bounds.min is not None and value < bounds.min:
            return f"{name} {amount(name, value)} is below the limit {amount(name, bounds.min)}"
    return None
