"""Expected gain in hypervolume where all costs are known exactly and only accuracy is not.

The hypervolume is an integral over budgets: at every budget, the best top-1 that fits into it. A
network gains at the budgets that it fits into, as far as it is better than the best one there. So
with exact costs only a one-dimensional expectation is left for each budget between two steps of
the front (Emmerich et al. 2011 need two for two uncertain objectives).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from vitnas.pareto import front

_Array = npt.NDArray[np.float64]


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
    steps = [np.unique(column) for column in costs.T]
    lows = [np.concatenate(([-np.inf], step)) for step in steps]
    highs = [np.append(step, end) for step, end in zip(steps, worst, strict=True)]
    low = np.array(list(product(*lows)))
    fits = (costs[None] <= low[:, None]).all(axis=2)
    best = np.where(fits, top1, floor).max(axis=1, initial=floor)
    return Budgets(low, np.array(list(product(*highs))), best)


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
    low = np.maximum(budgets.low[None], costs[:, None])
    volume = np.maximum(budgets.high[None] - low, 0.0).prod(axis=2)
    better = np.maximum(scenarios[:, None] - budgets.best[None, :, None], 0.0) @ weights
    gain: _Array = (volume * better).sum(axis=1)
    return gain
