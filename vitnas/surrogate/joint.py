"""What is known of several networks together: those that resemble each other err alike.

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
    usual = set(scores(trainings, noise).usual.tolist())
    places = [place for place, index in enumerate(of) if index in usual]
    told = with_untrained(facts, trainings, noise, [of[place] for place in places], ())
    if told is None or not places:
        return found
    _, covariance = told
    deviations = np.sqrt(np.maximum(np.diag(covariance), _LEAST))
    found[np.ix_(places, places)] = covariance / np.outer(deviations, deviations)
    np.fill_diagonal(found, 1.0)
    return found


def with_untrained(
    facts: Sequence[Facts],
    trainings: Sequence[Sequence[float]],
    noise: Noise,
    of: Sequence[int],
    others: Sequence[Facts],
) -> tuple[_Array, _Array] | None:
    """Mean (k + m,) and covariance of the true log-odds of k trained networks, then of m that were
    not trained, given all scores.

    Args:
        facts, trainings, noise: as for `correlations`.
        of: indices of the k networks, among `Known.usual`.
        others: facts of the m networks.

    Returns:
        None where too few networks are known to learn from.
    """
    known = scores(trainings, noise)
    if not known.says_more:
        return None
    rows_of = np.union1d(known.learned, np.asarray(of, dtype=np.intp))
    row_of = {index: row for row, index in enumerate(rows_of.tolist())}
    encoder, standard = Encoder([*facts, *others]), known.standard(rows_of)
    table = encoder.encode([*(facts[index] for index in row_of), *others])
    x, rows = table[: len(row_of)], [row_of[index] for index in of]
    kernels = kernels_of(x, x)
    asked = np.concatenate([x[rows], table[len(row_of) :]])
    reach, within = kernels_of(x, asked), kernels_of(asked, asked)

    def sides(prior: Prior) -> tuple[_Array, _Array]:
        across = prior.variance * reach[prior.length]
        across[rows, range(len(rows))] += prior.variance * prior.own  # u_i of the same network
        return across, prior.covariance(within)

    mean, covariance = posterior(kernels, standard, sides)
    return standard.centre + standard.spread * mean, standard.spread**2 * covariance
