"""How the front grew with the trials, as a share of the dominated volume at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite

import numpy as np

from vitnas.config.costs import COSTS, log_cost, log_costs
from vitnas.pareto import front, hypervolume
from vitnas.records import Run, TrialRecord


def reference_point(run: Run) -> tuple[float, ...]:
    """The worst corner: top-1 of guessing in percent, and of each cost the worst allowed or seen.

    Guessing is 0 where the number of classes is not known.
    """
    classes = run.environment.data.num_classes
    return (100.0 / classes if classes else 0.0, *(_worst(run, cost) for cost in run.costs))


def _worst(run: Run, cost: str) -> float:
    """The highest amount, or the lowest where more is better; 1 where there is none above 0."""
    amounts = [value for trial in run.complete for value in trial.costs([cost])]
    known = [value for value in (*amounts, _limit(run, cost) or 0.0) if 0 < value < inf]
    return max(known, key=lambda value: log_cost(cost, value), default=1.0)


def _limit(run: Run, cost: str) -> float | None:
    limits = run.space.get("limits")
    bounds = limits.get(cost) if isinstance(limits, Mapping) else None
    end = "max" if COSTS[cost].sign > 0 else "min"
    limit = bounds.get(end) if isinstance(bounds, Mapping) else None
    return float(limit) if isinstance(limit, (int, float)) else None


def volume_curve(run: Run) -> list[tuple[int, float]]:
    """(trial number, hypervolume so far) after each complete trial, in order of their number.

    The hypervolume is taken in top-1 points times ln of each cost above `reference_point`, and
    divided by its last value, so that the curve ends at 1. Empty when no trial beats the reference.
    """
    worst, *dearest = reference_point(run)
    corner = (-worst, *(value + 1e-9 for value in log_costs(run.costs, dearest)))
    members = np.empty((0, len(corner)))
    volumes: list[tuple[int, float]] = []
    volume = 0.0
    for trial in run.complete:
        costs = trial.costs(run.costs)
        if not _usable(trial, costs):
            continue
        point = np.array([-(trial.top1 or 0.0), *log_costs(run.costs, costs)])
        alone = hypervolume(point[None], corner)
        volume += alone - hypervolume(np.maximum(members, point), corner)  # what it adds
        members = np.vstack([members, point])
        members = members[front(members)]
        volumes.append((trial.number, volume))
    last = volumes[-1][1] if volumes else 0.0
    return [(number, volume / last) for number, volume in volumes] if last > 0 else []


def _usable(trial: TrialRecord, costs: Sequence[float]) -> bool:
    return trial.top1 is not None and isfinite(trial.top1) and all(0 < c < inf for c in costs)


def reached(curve: list[tuple[int, float]], share: float) -> int | None:
    """After how many complete trials the curve first had `share` of its last value."""
    return next((count for count, (_, value) in enumerate(curve, 1) if value >= share), None)
