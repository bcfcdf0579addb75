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
the same images, so their noise may be smaller than binomial: phi is at most 1. `evidence` weighs
the priors.

Of more than `evidence.MOST` networks, so many are learned from, chosen whatever they reached. What
is expected of another one follows from these and from its own trainings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vitnas.noise import Expected, Noise
from vitnas.surrogate.evidence import Standard, kernels_of, scores, weighted_priors
from vitnas.surrogate.features import Encoder, Facts
from vitnas.surrogate.odds import percent, points
from vitnas.surrogate.process import prior_variance

_Array = npt.NDArray[np.float64]
_LEAST = 1e-300


def expected_top1(
    facts: Sequence[Facts], trainings: Sequence[Sequence[float]], noise: Noise
) -> list[Expected]:
    """The expected top-1 of each of n networks.

    Networks far below the others (by three interquartile ranges) would stretch the scale: they keep
    their scores. So do all networks when fewer than `evidence.FEWEST` are left.

    Args:
        facts: of each network (see `facts_of`).
        trainings: of each network, the finite top-1 in percent of its trainings, at least one.
        noise: of the run.
    """
    known = scores(trainings, noise)
    means, errors = known.top1.copy(), known.errors.copy()
    if known.says_more:
        others = np.setdiff1d(known.usual, known.learned)
        usual = np.concatenate([known.learned, others])
        x = Encoder(facts).encode([facts[index] for index in usual.tolist()])
        values, deviations = _posterior(x, known.standard(), known.standard(others))
        means[usual] = percent(values)
        errors[usual] = deviations * points(means[usual])
    return [Expected(*pair) for pair in zip(means.tolist(), errors.tolist(), strict=True)]


def _posterior(x: _Array, standard: Standard, others: Standard) -> tuple[_Array, _Array]:
    """Means and standard deviations of m + f + u in log-odds at the rows of `x`.

    As `evidence.posterior`, but for covariances: the search asks often, and for variances alone.

    Args:
        x: (n + m, d) standardised facts.
        standard: log-odds of the first n networks and their noise: these are learned from.
        others: the same of the last m, each of which tells of itself alone.
    """
    (y, known, centre, spread), n = standard, len(standard.y)
    kernels, reach = kernels_of(x[:n], x[:n]), kernels_of(x[:n], x[n:])
    mean, square, total = np.zeros(len(x)), np.zeros(len(x)), np.zeros(len(x))
    for prior, weight in weighted_priors(kernels, y, known):
        covariance = prior.covariance(kernels)
        across = np.hstack([covariance, prior.variance * reach[prior.length]])
        gain = np.linalg.solve(covariance + prior.noise(known), across)
        apart = prior.variance * (prior_variance(x[n:]) + prior.own)
        values = gain.T @ y
        variances = np.append(np.diag(covariance), apart) - (gain * across).sum(axis=0)
        seen, off = variances[n:] + np.diag(prior.noise(others.known)), others.y - values[n:]
        likelihood = np.maximum(np.exp(-(off**2) / seen / 2) / np.sqrt(seen), _LEAST)
        weights = weight * np.append(np.ones(n), likelihood)
        values[n:] += variances[n:] / seen * off
        variances[n:] *= 1 - variances[n:] / seen
        mean += weights * values
        square += weights * (values**2 + variances)
        total += weights
    mean, square = mean / total, square / total  # its own score speaks for some priors, too
    return centre + spread * mean, spread * np.sqrt(np.maximum(square - mean**2, 0.0))
