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
from vitnas.surrogate.evidence import Prior, kernels_of, posterior, scores
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
    encoder, standard = Encoder([*facts, *others]), known.standard()
    x = encoder.encode([facts[index] for index in known.learned.tolist()])
    rows = encoder.encode(others)
    reach = {length: k @ weights.T for length, k in kernels_of(x, rows).items()}
    sums = {length: weights @ k @ weights.T for length, k in kernels_of(rows, rows).items()}

    def sides(prior: Prior) -> tuple[_Array, _Array]:
        return prior.variance * reach[prior.length], prior.variance * sums[prior.length]

    mean, covariance = posterior(kernels_of(x, x), standard, sides)
    return standard.spread * mean, standard.spread**2 * covariance
