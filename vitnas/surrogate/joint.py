"""How the errors of expected top-1 belong together: networks that resemble each other err alike.

The model is that of `expected`, whose errors are the deviations of this posterior.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vitnas.noise import Noise
from vitnas.surrogate.evidence import Prior, kernels_of, posterior, scores
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
    kernels, rows = kernels_of(x, x), [row_of[of[place]] for place in places]

    def sides(prior: Prior) -> tuple[_Array, _Array]:
        there = prior.covariance(kernels)[:, rows]
        return there, there[rows]

    _, covariance = posterior(kernels, known.standard(), sides)
    deviations = np.sqrt(np.maximum(np.diag(covariance), _LEAST))
    found[np.ix_(places, places)] = covariance / np.outer(deviations, deviations)
    np.fill_diagonal(found, 1.0)
    return found
