"""How the errors of expected top-1 belong together: networks that resemble each other err alike.

The model is that of `expected`, whose errors are the deviations of this posterior.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vitnas.noise import Noise
from vitnas.surrogate.evidence import kernels_of, scores, weighted_priors
from vitnas.surrogate.features import Encoder, Facts

_Array = npt.NDArray[np.float64]
_LEAST = 1e-12


def correlations(
    facts: Sequence[Facts],
    trainings: Sequence[Sequence[float]],
    noise: Noise,
    of: Sequence[int],
) -> _Array:
    """The correlations (k, k) of the true log-odds of k networks, given all scores.

    Networks of which nothing is learned from the others (see `expected.expected_top1`) are
    independent of all.

    Args:
        facts: of each of n networks (see `facts_of`).
        trainings: of each network, the finite top-1 in percent of its trainings, at least one.
        noise: of the run.
        of: indices of the k networks.
    """
    found = np.eye(len(of))
    known = scores(trainings, noise)
    row_of = {index: row for row, index in enumerate(known.usual.tolist())}
    places = [place for place, index in enumerate(of) if index in row_of]
    if not known.says_more or not places:
        return found
    x = Encoder(facts).encode([facts[index] for index in row_of])
    odds = known.odds[known.usual]
    y = (odds - odds.mean()) / odds.std()
    errors = (known.errors / known.slope)[known.usual] / odds.std()
    covariance = _covariance(x, y, errors**2, [row_of[of[place]] for place in places])
    deviations = np.sqrt(np.maximum(np.diag(covariance), _LEAST))
    found[np.ix_(places, places)] = covariance / np.outer(deviations, deviations)
    np.fill_diagonal(found, 1.0)
    return found


def _covariance(x: _Array, y: _Array, known: _Array, rows: list[int]) -> _Array:
    """Of m + f + u at some rows of `x`, averaged over the priors."""
    kernels = kernels_of(x, x)
    mean, square = np.zeros(len(rows)), np.zeros((len(rows), len(rows)))
    for prior, weight in weighted_priors(kernels, y, known):
        covariance = prior.covariance(kernels)
        there = covariance[:, rows]
        gain = np.linalg.solve(covariance + prior.noise(known), there)
        values = gain.T @ y
        mean += weight * values
        square += weight * (np.outer(values, values) + there[rows] - there.T @ gain)
    return square - np.outer(mean, mean)
