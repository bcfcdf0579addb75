"""What the trainings of a run say of differences between networks, trained or not.

The model is that of `expected`. A difference is a weighted sum of f over networks whose weights add
up to 0; so f's mean does not matter, and what is a network's own (u_i) is left out: it says nothing
of another network.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vitnas.noise import Noise
from vitnas.surrogate.evidence import kernels_of, scores, weighted_priors
from vitnas.surrogate.features import Encoder, Facts

_Array = npt.NDArray[np.float64]


def differences(
    facts: Sequence[Facts],
    trainings: Sequence[Sequence[float]],
    noise: Noise,
    others: Sequence[Facts],
    weights: _Array,
) -> tuple[_Array, _Array] | None:
    """Mean (k,) and covariance (k, k) of k weighted sums of f, in log-odds.

    Args:
        facts: of each trained network (see `facts_of`).
        trainings: of each of them, the finite top-1 in percent of its trainings, at least one.
        noise: of the run.
        others: facts of the m networks that are compared; they may be trained or not.
        weights: (k, m); each row adds up to 0.

    Returns:
        None where too few networks are known to learn from.
    """
    known = scores(trainings, noise)
    if not known.says_more:
        return None
    encoder = Encoder([*facts, *others])
    x = encoder.encode([facts[index] for index in known.usual.tolist()])
    rows = encoder.encode(others)
    y, errors = known.odds[known.usual], (known.errors / known.slope)[known.usual]
    centre, spread = y.mean(), y.std()
    mean, covariance = _sums(x, (y - centre) / spread, (errors / spread) ** 2, rows, weights)
    return spread * mean, spread**2 * covariance


def _sums(
    x: _Array, y: _Array, known: _Array, rows: _Array, weights: _Array
) -> tuple[_Array, _Array]:
    """Mean and covariance of `weights` times f at `rows`, averaged over the priors."""
    among, across, own = kernels_of(x, x), kernels_of(x, rows), kernels_of(rows, rows)
    sums = {length: weights @ k @ weights.T for length, k in own.items()}
    reach = {length: k @ weights.T for length, k in across.items()}
    mean, square = np.zeros(len(weights)), np.zeros((len(weights), len(weights)))
    for prior, weight in weighted_priors(among, y, known):
        to_sums = prior.variance * reach[prior.length]
        gain = np.linalg.solve(prior.covariance(among) + prior.noise(known), to_sums)
        values = gain.T @ y
        mean += weight * values
        square += weight * (
            np.outer(values, values) + prior.variance * sums[prior.length] - to_sums.T @ gain
        )
    return mean, square - np.outer(mean, mean)
