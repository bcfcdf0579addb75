"""Many fronts of one run: what they attain at each cost, and how far they are apart.

Networks i = 1 .. k have exact costs c_i. A draw says what the top-1 of each is in truth, and so
which front they have. With A(c), the best top-1 of a draw among networks with c_i <= c:

    alpha(c, t)  = P(A(c) >= t)                    attainment function (Fonseca et al. 2001)
    Q_b          = {(c, t): alpha(c, t) >= b}      attained by a share b of the fronts
    V            = Q_b* with volume(Q_b*) = E volume(A)           Vorob'ev expectation
    deviation    = E volume(A - V) + E volume(V - A)              Vorob'ev deviation

(Binois, Ginsbourger and Roustant 2015, European Journal of Operational Research 243(2), section 3).
A volume here is an area in points of top-1 times ln cost. It is divided by the range of ln cost, so
that a deviation is in points of top-1, as a mean over ln cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]
LOW, HIGH = 0.05, 0.95
_HALVINGS = 40


class Attained(NamedTuple):
    """What drawn fronts attain.

    Attributes:
        log_costs: (m,) where the steps are, rising: logarithms of costs, negated if more is better.
        low, median, high: (m,) top-1 in percent that 95, 50 and 5 % of the fronts attain there.
        middle: (m,) the Vorob'ev expectation.
        deviation: of the fronts around it, in points of top-1.
    """

    log_costs: _Array
    low: _Array
    median: _Array
    high: _Array
    middle: _Array
    deviation: float


def attained(draws: _Array, log_costs: _Array, end: float) -> Attained:
    """The attainment function of drawn fronts.

    Args:
        draws: (s, k) top-1 in percent of k >= 1 networks in each of s draws.
        log_costs: (k,) their logarithms of costs, negated if more is better.
        end: of the range of log costs over which fronts are compared, at least the largest.
    """
    order = np.argsort(log_costs, kind="stable")
    at = log_costs[order]
    best = np.maximum.accumulate(draws[:, order], axis=1)
    last = np.append(at[1:] > at[:-1], True)  # of networks with equal costs
    at, best = at[last], best[:, last]
    widths = np.diff(at, append=max(end, float(at[-1])))
    shares = widths / widths.sum() if widths.sum() > 0 else np.full(len(at), 1 / len(at))
    low, median, high = np.quantile(best, [LOW, 0.5, HIGH], axis=0)
    middle = _expectation(best, shares)
    deviation = float((np.abs(best - middle) @ shares).mean())
    return Attained(at, low, median, high, middle, deviation)


def _expectation(best: _Array, shares: _Array) -> _Array:
    """The quantile with the mean area of all fronts, by bisection: the area grows with it."""
    area = float((best @ shares).mean())
    ordered = np.sort(best, axis=0)
    below, above = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        is_short = float(_quantile(ordered, middle) @ shares) < area
        below, above = (middle, above) if is_short else (below, middle)
    return _quantile(ordered, above)


def _quantile(ordered: _Array, share: float) -> _Array:
    """Of sorted columns, between two rows linearly."""
    place = share * (len(ordered) - 1)
    first = min(int(place), max(len(ordered) - 2, 0))
    second = min(first + 1, len(ordered) - 1)
    between: _Array = ordered[first] + (place - first) * (ordered[second] - ordered[first])
    return between
