"""What trainings tell of the function behind them: the likely priors, each by its evidence.

The model is that of `expected`. The variance of f, its length l, the share w of what is a network's
own, and phi are averaged over a grid, each combination by its likelihood (MacKay 1992, Neural
Computation 4(3), calls it the evidence).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitnas.noise import Noise
from vitnas.surrogate.odds import logit, points
from vitnas.surrogate.process import LENGTHS, kernel

_Array = npt.NDArray[np.float64]
FEWEST = 8
"""Networks from which on something is learned from the others."""
MOST = 500
"""Networks that are learned from; the time grows with the third power."""
_JITTER = 1e-9
_VARIANCES, _OWN, _PHIS = (0.1, 0.2, 0.4, 0.8, 1.6), (0.0, 0.1, 0.3), (0.25, 0.5, 1.0)
_WEIGHED_BY, _LEAST_WEIGHT = 160, 0.02


class Prior(NamedTuple):
    """Variance of f as a multiple of that of the log-odds, length l, share w, and phi."""

    variance: float
    length: float
    own: float
    phi: float

    def covariance(self, kernels: Mapping[float, _Array]) -> _Array:
        """(n, n): of f(x_i) + u_i, from k for each length."""
        k = kernels[self.length]
        return self.variance * (k + self.own * np.eye(len(k)))

    def noise(self, known: _Array) -> _Array:
        """(n, n): of e_i, from its known variances."""
        return np.diag(self.phi * known + _JITTER)


_PRIORS = [Prior(*values) for values in product(_VARIANCES, LENGTHS, _OWN, _PHIS)]


class Standard(NamedTuple):
    """Log-odds of the networks that are learned from, with mean 0 and deviation 1.

    Attributes:
        y: (n,) them.
        known: (n,) variances of their noise, in this unit.
        centre, spread: mean and deviation in log-odds.
    """

    y: _Array
    known: _Array
    centre: float
    spread: float


@dataclass(frozen=True)
class Known:
    """What the trainings of n networks say of each alone.

    Attributes:
        top1: (n,) mean top-1 in percent.
        errors: (n,) standard deviations of its noise, in points.
        odds: (n,) log-odds of `top1`.
        slope: (n,) points that one unit of log-odds is worth there.
        usual: indices of networks that are not far below the others (by three interquartile
            ranges): those would stretch the scale.
        learned: indices of those of `usual` that are learned from: all, or some evenly over their
            order. The best ones would teach too much of good luck.
    """

    top1: _Array
    errors: _Array
    odds: _Array
    slope: _Array
    usual: npt.NDArray[np.intp]
    learned: npt.NDArray[np.intp]

    @property
    def says_more(self) -> bool:
        """Whether the networks are enough, and differ, to learn of one from the others."""
        return len(self.learned) >= FEWEST and float(np.ptp(self.odds[self.learned])) > 0

    def standard(self, of: npt.NDArray[np.intp] | None = None) -> Standard:
        """What is learned from, or the networks `of` in its unit; only where it `says_more`."""
        odds = self.odds[self.learned]
        centre, spread = float(odds.mean()), float(odds.std())
        told = self.learned if of is None else of
        errors = (self.errors / self.slope)[told]
        y, known = (self.odds[told] - centre) / spread, (errors / spread) ** 2
        return Standard(y, known, centre, spread)


def scores(trainings: Sequence[Sequence[float]], noise: Noise) -> Known:
    """What is known of networks, from the finite top-1 in percent of the trainings of each."""
    top1, errors = np.array(noise.expected(trainings)).reshape(-1, 2).T
    least = 100 / (noise.num_images + 2)
    odds, slope = logit(top1, least, 100 - least), points(np.clip(top1, least, 100 - least))
    usual = np.flatnonzero(~_far_below(odds))
    return Known(top1, errors, odds, slope, usual, _evenly(usual))


def _evenly(indices: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """At most `MOST` of them, evenly over their order."""
    if len(indices) <= MOST:
        return indices
    places = np.linspace(0, len(indices) - 1, MOST).round().astype(np.intp)
    return np.asarray(indices[places])


def _far_below(odds: _Array) -> npt.NDArray[np.bool_]:
    if not len(odds):
        return np.zeros(0, dtype=bool)
    low, middle, high = np.quantile(odds, [0.25, 0.5, 0.75])
    return np.asarray(odds < middle - 3 * (high - low))


def kernels_of(a: _Array, b: _Array) -> dict[float, _Array]:
    """`kernel` of the rows of `a` and `b` for each length of the grid."""
    return {length: kernel(a, b, length) for length in LENGTHS}


def weighted_priors(
    kernels: Mapping[float, _Array], y: _Array, known: _Array
) -> list[tuple[Prior, float]]:
    """The likely priors and their weights, which add up to 1; weighed by some of many networks.

    Args:
        kernels: (n, n) of the networks with themselves, for each length.
        y: (n,) standardised log-odds.
        known: (n,) variances of their noise, in the same unit.
    """
    few = slice(None, None, -(-len(y) // _WEIGHED_BY))
    some = {length: k[few, few] for length, k in kernels.items()}
    logs = np.array([_likelihood(prior, some, y[few], known[few]) for prior in _PRIORS])
    weights = np.exp(logs - logs.max())
    weights[weights < _LEAST_WEIGHT * weights.max()] = 0.0
    pairs = zip(_PRIORS, (weights / weights.sum()).tolist(), strict=True)
    return [(prior, weight) for prior, weight in pairs if weight]


def posterior(
    kernels: Mapping[float, _Array],
    standard: Standard,
    sides: Callable[[Prior], tuple[_Array, _Array]],
) -> tuple[_Array, _Array]:
    """Mean (k,) and covariance (k, k) of k values, given the networks, averaged over the priors.

    Args:
        kernels: (n, n) of the networks with themselves, for each length.
        standard: what is known of them.
        sides: for a prior, the covariances (n, k) of the networks with the values, and those (k, k)
            of the values.
    """
    y, known = standard.y, standard.known
    mean, square = 0.0, 0.0
    for prior, weight in weighted_priors(kernels, y, known):
        across, own = sides(prior)
        gain = np.linalg.solve(prior.covariance(kernels) + prior.noise(known), across)
        values = gain.T @ y
        mean = mean + weight * values
        square = square + weight * (np.outer(values, values) + own - across.T @ gain)
    return np.asarray(mean), np.asarray(square - np.outer(mean, mean))


def _likelihood(prior: Prior, kernels: Mapping[float, _Array], y: _Array, known: _Array) -> float:
    """Logarithm of the density of `y`, but for a constant."""
    factor = np.linalg.cholesky(prior.covariance(kernels) + prior.noise(known))
    white = np.linalg.solve(factor, y)
    return float(-0.5 * white @ white - np.log(np.diag(factor)).sum())
