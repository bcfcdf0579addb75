"""What top-1 each network of a run is expected to reach, learned from the trainings of all.

One short training, scored on a few hundred images, says little about its network. Networks that
resemble each other reach similar accuracies, so the scores of all say more. The model of the
log-odds y_i of network i's mean top-1 (empirical Bayes):

    y_i = m + f(x_i) + u_i + e_i

    m      mean of all networks
    f      Gaussian process over the facts x_i of a network; kernel k of `process`, length l
    u_i    what is the network's own: normal, variance w as a share of that of f
    e_i    noise of its trainings: normal, phi times the variance that `vitnas.noise` gives

The answer is the posterior of m + f(x_i) + u_i. Noise alone is smoothed away: with many scoring
images, or many replicates of a network, its expected top-1 is its score. All networks are scored on
the same images, so their noise may be smaller than binomial: phi is at most 1. The variance of f,
l, w and phi are averaged over a grid, each combination by its likelihood (MacKay 1992, Neural
Computation 4(3), calls it the evidence).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitnas.noise import Expected, Noise
from vitnas.surrogate.features import Encoder, Facts
from vitnas.surrogate.odds import logit, percent, points
from vitnas.surrogate.process import LENGTHS, kernel

_Array = npt.NDArray[np.float64]
FEWEST = 8
_JITTER = 1e-9
_VARIANCES, _OWN, _PHIS = (0.1, 0.2, 0.4, 0.8, 1.6), (0.0, 0.1, 0.3), (0.25, 0.5, 1.0)
_WEIGHED_BY, _LEAST_WEIGHT = 160, 0.02


class _Prior(NamedTuple):
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


_PRIORS = [_Prior(*values) for values in product(_VARIANCES, LENGTHS, _OWN, _PHIS)]


def expected_top1(
    facts: Sequence[Facts], trainings: Sequence[Sequence[float]], noise: Noise
) -> list[Expected]:
    """The expected top-1 of each of n networks.

    Networks far below the others (by three interquartile ranges) would stretch the scale: they keep
    their scores. So do all networks when fewer than `FEWEST` are left.

    Args:
        facts: of each network (see `facts_of`).
        trainings: of each network, the finite top-1 in percent of its trainings, at least one.
        noise: of the run.
    """
    means, errors = np.array(noise.expected(trainings)).reshape(-1, 2).T
    least = 100 / (noise.num_images + 2)
    odds, slope = logit(means, least, 100 - least), points(np.clip(means, least, 100 - least))
    usual = np.flatnonzero(~_far_below(odds))
    if len(usual) >= FEWEST and np.ptp(odds[usual]) > 0:
        x = Encoder(facts).encode([facts[index] for index in usual.tolist()])
        values, deviations = _posterior(x, odds[usual], errors[usual] / slope[usual])
        means[usual] = percent(values)
        errors[usual] = deviations * points(means[usual])
    return [Expected(*pair) for pair in zip(means.tolist(), errors.tolist(), strict=True)]


def _far_below(odds: _Array) -> npt.NDArray[np.bool_]:
    if not len(odds):
        return np.zeros(0, dtype=bool)
    low, middle, high = np.quantile(odds, [0.25, 0.5, 0.75])
    return np.asarray(odds < middle - 3 * (high - low))


def _posterior(x: _Array, y: _Array, errors: _Array) -> tuple[_Array, _Array]:
    """Means and standard deviations of m + f + u at the rows of `x`.

    Args:
        x: (n, d) standardised facts.
        y: (n,) log-odds.
        errors: (n,) standard deviations of their noise.
    """
    centre, spread = y.mean(), y.std()
    targets, known = (y - centre) / spread, (errors / spread) ** 2
    kernels = {length: kernel(x, x, length) for length in LENGTHS}
    mean, square = np.zeros(len(y)), np.zeros(len(y))
    for prior, weight in _weighted(kernels, targets, known):
        covariance = prior.covariance(kernels)
        gain = np.linalg.solve(covariance + prior.noise(known), covariance).T
        values = gain @ targets
        mean += weight * values
        square += weight * (values**2 + np.diag(covariance) - (gain * covariance).sum(axis=1))
    return centre + spread * mean, spread * np.sqrt(np.maximum(square - mean**2, 0.0))


def _weighted(
    kernels: Mapping[float, _Array], y: _Array, known: _Array
) -> list[tuple[_Prior, float]]:
    """The likely priors and their weights, which add up to 1; weighed by some of many networks."""
    few = slice(None, None, -(-len(y) // _WEIGHED_BY))
    some = {length: k[few, few] for length, k in kernels.items()}
    logs = np.array([_likelihood(prior, some, y[few], known[few]) for prior in _PRIORS])
    weights = np.exp(logs - logs.max())
    weights[weights < _LEAST_WEIGHT * weights.max()] = 0.0
    pairs = zip(_PRIORS, (weights / weights.sum()).tolist(), strict=True)
    return [(prior, weight) for prior, weight in pairs if weight]


def _likelihood(prior: _Prior, kernels: Mapping[float, _Array], y: _Array, known: _Array) -> float:
    """Logarithm of the density of `y`, but for a constant."""
    factor = np.linalg.cholesky(prior.covariance(kernels) + prior.noise(known))
    white = np.linalg.solve(factor, y)
    return float(-0.5 * white @ white - np.log(np.diag(factor)).sum())
