"""Expected gain in hypervolume when all costs are exact and only accuracy is uncertain.

The hypervolume is an integral over budgets: at every budget, the best top-1 that fits into it. A
network gains at the budgets into which it fits, by the difference to the best top-1 there. So with
exact costs, each budget between two steps of the front needs only a one-dimensional expectation
(Emmerich et al. 2011 need two dimensions for two uncertain objectives).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vitnas.pareto import front

_Array = npt.NDArray[np.float64]
_MOST_BOXES, _POINTS = 10_000, 4096


class Budgets(Protocol):
    """The space of budgets in k parts; within each part one value is the best known top-1.

    Attributes:
        best: (k,) that top-1.
    """

    @property
    def best(self) -> _Array: ...

    def room(self, cost: _Array) -> _Array:
        """(k,) volume of each part into which a network of this `cost` (d,) fits."""


@dataclass(frozen=True)
class Boxes:
    """Boxes in which the best known top-1 is the same: exact.

    Attributes:
        low, high: (k, d) ends of the boxes; `low` may be minus infinity.
        best: (k,) the best top-1 known within each.
    """

    low: _Array
    high: _Array
    best: _Array

    def room(self, cost: _Array) -> _Array:
        return np.asarray(np.maximum(self.high - np.maximum(self.low, cost), 0.0).prod(axis=1))


@dataclass(frozen=True)
class Points:
    """Random points that stand for equal parts of the space: unbiased, and the same for all.

    Attributes:
        at: (k, d) the points.
        volume: of each part.
        best: (k,) the best top-1 known at each.
    """

    at: _Array
    volume: float
    best: _Array

    def room(self, cost: _Array) -> _Array:
        return np.asarray((self.at >= cost).all(axis=1) * self.volume)


def cut_budgets(
    costs: _Array, top1: _Array, worst: _Array, floor: float, least: _Array | None = None
) -> Budgets:
    """Boxes between the costs of known networks; random points where there are too many of them.

    With n networks on the front there are (n + 1)^d boxes. So points replace boxes from about a
    hundred networks on with two costs, and from twenty on with three.

    Args:
        costs: (n, d) of known networks.
        top1: (n,) of the same.
        worst: (d,) the largest budget that counts.
        floor: top-1 that counts as nothing.
        least: (d,) no network costs less; what is known unless it is said.
    """
    kept = (costs < worst).all(axis=1) & (top1 > floor)
    costs, top1 = costs[kept], top1[kept]
    members = front(np.column_stack([-top1, costs]))
    costs, top1 = costs[members], top1[members]
    steps = [np.unique(column) for column in costs.T]
    if np.prod([len(step) + 1.0 for step in steps]) > _MOST_BOXES:
        least = costs.min(axis=0) if least is None else least
        at = np.random.default_rng(0).uniform(least, worst, (_POINTS, len(worst)))
        volume = float((worst - least).prod()) / _POINTS
        return Points(at, volume, _best_at(at, costs, top1, floor))
    lows = [np.concatenate(([-np.inf], step)) for step in steps]
    highs = [np.append(step, end) for step, end in zip(steps, worst, strict=True)]
    low, high = np.array(list(product(*lows))), np.array(list(product(*highs)))
    return Boxes(low, high, _best_at(low, costs, top1, floor))


def _best_at(budgets: _Array, costs: _Array, top1: _Array, floor: float) -> _Array:
    """(k,) the best top-1 that fits into each of `budgets` (k, d)."""
    best = np.full(len(budgets), floor)
    for index in np.argsort(top1, kind="stable"):
        best[(costs[index] <= budgets).all(axis=1)] = top1[index]
    return best


def expected_gain(costs: _Array, scenarios: _Array, weights: _Array, budgets: Budgets) -> _Array:
    """What candidates are expected to add to the hypervolume, in percent times units of costs.

    Args:
        costs: (m, d) of the candidates.
        scenarios: (m, q) top-1 they may turn out to have.
        weights: (q,) chances of the scenarios.
        budgets: see `cut_budgets`.

    Returns:
        (m,) gains, at least 0.
    """
    levels, level_of = np.unique(budgets.best, return_inverse=True)
    better = np.maximum(scenarios[:, None] - levels[None, :, None], 0.0) @ weights
    pairs = zip(costs, better, strict=True)
    return np.array([budgets.room(cost) @ gains[level_of] for cost, gains in pairs])
