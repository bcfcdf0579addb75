"""How the front grew with the trials: hypervolume as a share of the hypervolume at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite

import numpy as np
import numpy.typing as npt

from vitnas.config.costs import COSTS, log_cost, log_costs
from vitnas.pareto import front, hypervolume
from vitnas.records import TrialRecord
from vitnas.run import Run


def reference_point(run: Run) -> tuple[float, ...]:
    """The worst corner: the lowest expected top-1 in percent of the networks that were trained to
    the end (0 without any), and the worst allowed or seen of each cost.

    From the top-1 of guessing, a run on easy images would be at 99 % after its first network.
    """
    known = (trial for trial in run.complete if usable(trial, trial.costs(run.costs)))
    worst = min((trial.estimate or 0.0 for trial in known), default=0.0)
    return (worst, *(_worst(run, cost) for cost in run.costs))


def corner_of(runs: Sequence[Run]) -> tuple[float, ...]:
    """The worst corner of several runs with the same objectives, to minimise; a little beyond the
    worst cost, so that a network there counts."""
    corners = [reference_point(run) for run in runs]
    tops = [corner[0] for corner in corners]
    logs = np.array([log_costs(run.costs, c[1:]) for run, c in zip(runs, corners, strict=True)])
    return (-min(tops), *(logs.max(axis=0) + 1e-9).tolist())


def is_random_search(run: Run) -> bool:
    """Whether chance alone proposed its networks, in every session."""
    return {session.sampler for session in run.environment.sessions} == {"random"}


def _worst(run: Run, cost: str) -> float:
    """The worst amount of a cost: the highest, or the lowest if more is better; 1 without any."""
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

    The hypervolume is measured from `reference_point` in top-1 points times ln of each cost. It is
    divided by its last value, so the curve ends at 1. Empty if no trial is better than the
    reference.
    """
    worst, *dearest = reference_point(run)
    corner = (-worst, *(value + 1e-9 for value in log_costs(run.costs, dearest)))
    volumes: list[tuple[int, float]] = []
    grown = Growing(corner)
    for trial in run.complete:
        costs = trial.costs(run.costs)
        if not usable(trial, costs):
            continue
        point = np.array([-(trial.estimate or 0.0), *log_costs(run.costs, costs)])
        grown.add(point)
        volumes.append((trial.number, grown.volume))
    last = volumes[-1][1] if volumes else 0.0
    return [(number, volume / last) for number, volume in volumes] if last > 0 else []


class Growing:
    """A front that gets one point after the other, and its hypervolume.

    Args:
        corner: (d,) the worst one, to minimise.

    Attributes:
        volume: of the points so far.
    """

    def __init__(self, corner: Sequence[float]) -> None:
        self._corner, self._members = corner, np.empty((0, len(corner)))
        self.volume = 0.0

    def add(self, point: npt.NDArray[np.float64]) -> None:
        """Add a point (d,), to minimise."""
        if (self._members <= point).all(axis=1).any():  # it adds nothing
            return
        alone = hypervolume(point[None], self._corner)
        self.volume += alone - hypervolume(np.maximum(self._members, point), self._corner)
        members = np.vstack([self._members, point])
        self._members = members[front(members)]


def usable(trial: TrialRecord, costs: Sequence[float]) -> bool:
    """Whether a complete trial counts for the hypervolume: finite top-1, and costs above 0."""
    return trial.top1 is not None and isfinite(trial.top1) and all(0 < c < inf for c in costs)


def reached(curve: list[tuple[int, float]], share: float) -> int | None:
    """Number of complete trials after which the curve first had `share` of its last value."""
    return next((count for count, (_, value) in enumerate(curve, 1) if value >= share), None)
