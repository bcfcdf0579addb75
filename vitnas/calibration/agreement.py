"""How well scores rank networks: Kendall's tau to the truth, overall and among like sizes.

In most spaces a larger network is better, so any score that grows with FLOPs has a high tau over
all networks. A search needs more: to tell networks of similar FLOPs apart. Hence tau within bins of
FLOPs: the mean of the bins' taus.

Intervals are 95 % percentile intervals of a bootstrap over networks (Efron and Tibshirani, An
Introduction to the Bootstrap, 1993, chapter 13). A resample draws as many networks from each bin
as the bin has. A network that is drawn k times counts k times; two copies of it are tied, and
tau-b (Kendall, Biometrika 33, 1945) leaves tied pairs out. Two scores are compared on the same
resamples.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
import numpy.typing as npt

MOST_BINS = 4
LEAST_NETWORKS = 4
"""Networks of a bin, and so of a calibration."""
_RESAMPLES = 2000
_TAIL = 0.025
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tau:
    """A tau with its interval.

    Attributes:
        value: from -1 to 1; 0 for a score that orders nothing.
        low, high: ends of the 95 % interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Judged:
    """What is known of one score.

    Attributes:
        overall: over all pairs of networks.
        within: the mean over the bins, of pairs inside a bin.
        resampled: `within` of each resample.
    """

    overall: Tau
    within: Tau
    resampled: Array


class Networks:
    """The networks that scores are judged on.

    Args:
        flops: of each of n networks, above 0.
        seed: of the resamples.
    """

    def __init__(self, flops: npt.ArrayLike, seed: int = 0) -> None:
        self._flops, self._seed = np.asarray(flops, dtype=float), seed

    @cached_property
    def bins(self) -> list[npt.NDArray[np.intp]]:
        """Indices of the networks of each bin: quartiles of FLOPs, fewer bins for few networks."""
        number = max(1, min(MOST_BINS, len(self._flops) // LEAST_NETWORKS))
        ends = np.quantile(self._flops, np.arange(1, number) / number)
        places = np.digitize(self._flops, ends)
        found = [np.flatnonzero(places == place) for place in range(number)]
        return [inside for inside in found if len(inside) > 1]

    def judge(self, pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> Judged:
        """Judge a score by its taus, averaged over `pairs`.

        Args:
            pairs: (score, truth), n numbers each. There are several if a score has several seeds,
                or if it may only be compared to the other seeds of the truth. Higher scores are
                better. A score of NaN or minus infinity ranks last.
        """
        overall = self._taus([np.arange(len(self._flops))], pairs)
        within = self._taus(self.bins, pairs)
        return Judged(_tau(overall), _tau(within), within[1:])

    def _taus(
        self,
        bins: Sequence[npt.NDArray[np.intp]],
        pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    ) -> Array:
        """The mean over bins and pairs: of the networks as they are, then of each resample."""
        found = []
        for score, truth in pairs:
            a, b = _floored(score), _floored(truth)
            found += [_resampled_tau(a[one], b[one], self._counts[:, one]) for one in bins]
        mean: Array = np.mean(found, axis=0)
        return mean

    @cached_property
    def _counts(self) -> Array:
        """(1 + resamples, n): how often each network counts."""
        draw = np.random.default_rng(self._seed)
        counts = np.ones((1 + _RESAMPLES, len(self._flops)))
        for inside in self.bins:
            share = np.full(len(inside), 1 / len(inside))
            counts[1:, inside] = draw.multinomial(len(inside), share, size=_RESAMPLES)
        return counts


def kendall_tau(first: npt.ArrayLike, second: npt.ArrayLike) -> float | None:
    """Kendall's tau-b, which allows for ties; None where one side has no order at all.

    It is scipy.stats.kendalltau's, whose import would take a third of a report's time.

    Args:
        first, second: n numbers each; all pairs of them are compared.
    """
    a, b = _order(first), _order(second)
    untied = float(np.count_nonzero(a)) * float(np.count_nonzero(b))
    return float(np.vdot(a, b)) / sqrt(untied) if untied else None


def cheapest_as_good(
    judged: Mapping[str, tuple[float, Judged]], sizes: Collection[str] = ()
) -> tuple[str, str]:
    """The best score within bins, and the cheapest that cannot be told from it.

    Two scores cannot be told apart where the 95 % interval of the difference of their taus within
    bins reaches 0. Where the best is told from every size, so is the cheapest: few networks cannot
    tell a score that says little from the best, and that is no reason to search with it.

    Args:
        judged: of each score its cost and what is known of it; at least one.
        sizes: names of those that are known before a network is built.

    Returns:
        The names of both; of equal costs, the higher tau.
    """
    best = max(judged, key=lambda name: judged[name][1].within.value)

    def is_above(name: str, other: str) -> bool:
        difference = judged[name][1].resampled - judged[other][1].resampled
        return float(np.quantile(difference, _TAIL)) > 0.0

    as_good = [name for name in judged if not is_above(best, name)]
    if not {*sizes} & {*as_good}:
        as_good = [name for name in as_good if all(is_above(name, size) for size in sizes)]
    cheapest = min(as_good, key=lambda name: (judged[name][0], -judged[name][1].within.value))
    return best, cheapest


def _resampled_tau(score: Array, truth: Array, counts: Array) -> Array:
    """Tau-b in which network i counts `counts[:, i]` times; 0 where one side has no order."""
    a, b = _order(score), _order(truth)
    agreeing, ordered_a, ordered_b = (
        ((counts @ signs) * counts).sum(axis=1) for signs in (a * b, np.abs(a), np.abs(b))
    )
    untied = np.sqrt(ordered_a * ordered_b)
    tau: Array = np.divide(agreeing, untied, out=np.zeros_like(untied), where=untied > 0)
    return tau


def _order(values: npt.ArrayLike) -> Array:
    """(n, n): 1 where the first is greater, -1 where the second is, 0 where they are tied."""
    v = np.asarray(values, dtype=float)
    return (v[:, None] > v).astype(float) - (v[:, None] < v)


def _floored(values: npt.ArrayLike) -> Array:
    """NaN as minus infinity, which ranks last."""
    v = np.asarray(values, dtype=float)
    return np.where(np.isnan(v), -np.inf, v)


def _tau(values: Array) -> Tau:
    """The first value, with the interval of the others."""
    low, high = np.quantile(values[1:], [_TAIL, 1 - _TAIL])
    return Tau(float(values[0]), float(low), float(high))
