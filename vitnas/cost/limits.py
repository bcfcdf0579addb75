"""A space's limits, checked against what is known of a network's costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vitnas.config.costs import COSTS, Priced, amount, cost_of

if TYPE_CHECKING:
    from vitnas.config.objectives import Limits


def over_limits(network: Priced, limits: Limits) -> str | None:
    """Why a network of this cost is outside the limits, in one line, or None.

    Args:
        network: what knows FLOPs (multiply-adds of one image) and parameters, e.g. a `Cost`, and
            perhaps measured costs, e.g. a `TrialRecord`. An unknown cost is not outside.
        limits: both ends included.
    """
    for name in COSTS:
        value, bounds = cost_of(network, name), getattr(limits, name)
        if value is None:
            continue
        if bounds.max is not None and value > bounds.max:
            return f"{name} {amount(name, value)} is above the limit {amount(name, bounds.max)}"
        if bounds.min is not None and value < bounds.min:
            return f"{name} {amount(name, value)} is below the limit {amount(name, bounds.min)}"
    return None
