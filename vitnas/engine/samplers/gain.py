"""Expected gain in hypervolume where all costs are known exactly and only accuracy is not.

The hypervolume is an integral over budgets: at every budget, the best top-1 that fits into it. A
network gains at the budgets that it fits into, as far as it is better than the best one there. So
with exact costs only a one-dimensional expectation is left for each budget between two steps of
the front (Emmerich et al. 2011 need two for two uncertain objectives).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import floor as whole

import numpy as np
import numpy.typing as npt

from vitnas.pareto import front

_Array = npt.NDArray[np.float64]
_MOST_BOXES = 10_000


@dataclass(frozen=True)
class Budgets:
    """The space of budgets, cut into boxes in which the best known top-1 is the same.

    Attributes:
        low, high: (k, d) ends of the boxes; `low` may be minus infinity.
        best: (k,) the best top-1 known within each.
    """

    low: _Array
    high: _Array
    best: _Array


def cut_budgets(costs: _Array, top1: _Array, worst: _Array, floor: float) -> Budgets:
    """Boxes between the costs of known networks.

    With n of them on the front there are (n + 1)^d boxes. Where that is more than 10,000 (from two
    costs on), only every so many-th cost of each kind is cut at: a box then counts as if its best
    were what fits into its cheapest corner, so gains between the cuts are taken for larger than
    they are.

    Args:
        costs: (n, d) of known networks.
        top1: (n,) of the same.
        worst: (d,) the largest budget that counts.
        floor: top-1 that counts as nothing.
    """
    kept = (costs < worst).all(axis=1) & (top1 > floor)
    costs, top1 = costs[kept], top1[kept]
    members = front(np.column_stack([-top1, costs]))
    costs, top1 = costs[members], top1[members]
    most = whole(_MOST_BOXES ** (1 / costs.shape[1]) + 1e-9) - 1
    steps = [_thin(np.unique(column), most) for column in costs.T]
    lows = [np.concatenate(([-np.inf], step)) for step in steps]
    highs = [np.append(step, end) for step, end in zip(steps, worst, strict=True)]
    low = np.array(list(product(*lows)))
    best = np.full(len(low), floor)
    for index in np.argsort(top1, kind="stable"):
        best[(costs[index] <= low).all(axis=1)] = top1[index]
    return Budgets(low, np.array(list(product(*highs))), best)


def _thin(values: _Array, most: int) -> _Array:
    """`most` of sorted values at most, evenly by rank, both ends among them."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(np.intp)]


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
    gain = np.empty(len(costs))
    for index, cost in enumerate(costs):
        volume = np.maximum(budgets.high - np.maximum(budgets.low, cost), 0.0).prod(axis=1)
        gain[index] = volume @ better[index, level_of]
    return gain
