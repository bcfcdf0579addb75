"""What the noise of trainings leaves open: errors of top-1, and the chance of being on the front.

Costs are exact, top-1 is random. The model: a training of network i reaches mu_i + e, where e is
normal with variance phi v_i; v_i = p_i (1 - p_i) / N is the binomial variance of a share of N
images at the network's own mean p_i, and the dispersion phi is common to all networks
(quasi-binomial variance: McCullagh and Nelder, Generalized Linear Models, 1989, sections 4.5 and
9.2). So errors are in percent, and they are smaller for good networks than for poor ones. One
number is pooled from all networks that were trained more than once.

phi has a scaled inverse chi-squared prior: 1, worth `PRIOR_DEGREES` degrees of freedom. Smyth
(2004, Statistical Applications in Genetics and Molecular Biology 3(1), article 3) moderates
variances of few replicates in this way, with a fitted prior. mu_i has a flat prior. Hence, given
the scores, the mu_i are jointly Student-t around the means of their trainings (Gelman et al.,
Bayesian Data Analysis, 3rd ed. 2013, section 3.2), and the chance that a network is on the front is
an integral over phi and its own mu:

    P(i on the front) = E_phi E_mu_i  product over j of Phi((mu_i - mean_j) / error_j(phi))

with j over the networks whose costs are all no higher than those of i.

Assumptions: trainings are independent given their networks, and noise is close to normal. The flat
prior does not use the results of similar networks; `vitnas.surrogate.expected` does, and its means
and errors can take the place of these. mu_i is the mean over trainings on these scoring images.
The error from the choice of images comes on top, but is similar for all networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import erfc, hypot, sqrt
from statistics import fmean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitnas.pareto import front

CONFIDENT = 0.9
PLAUSIBLE = 0.1
PRIOR_DEGREES = 4
_NEGLIGIBLE, _LEAST_ERROR = 1e-3, 1e-6
_Array = npt.NDArray[np.float64]
_AT = np.linspace(-9.0, 9.0, 3601)
_LOG_NORMAL = np.log([0.5 * erfc(-z / sqrt(2)) for z in _AT])


class Expected(NamedTuple):
    """Top-1 that is expected of a network's trainings.

    Attributes:
        top1: in percent.
        error: its standard error in points.
    """

    top1: float
    error: float


@dataclass(frozen=True)
class Noise:
    """How far trainings scatter.

    Attributes:
        dispersion: their variance as a multiple of the binomial one, the prior's 1 included.
        degrees: of freedom behind it, the prior's included.
        num_images: of the scoring split.
    """

    dispersion: float
    degrees: int
    num_images: int

    @property
    def is_measured(self) -> bool:
        """Whether any network was trained more than once."""
        return self.degrees > PRIOR_DEGREES

    @property
    def without_prior(self) -> Noise | None:
        """What was measured alone; None if that is nothing."""
        if not self.is_measured:
            return None
        degrees = self.degrees - PRIOR_DEGREES
        squares = self.dispersion * self.degrees - PRIOR_DEGREES
        return Noise(max(squares, 0.0) / degrees, degrees, self.num_images)

    def error(self, top1: float, num_trainings: int = 1) -> float:
        """Standard error in points of a mean top-1 in percent over so many trainings."""
        variance = self.dispersion * float(_binomial(np.array([top1]), self.num_images)[0])
        return sqrt(variance / num_trainings)

    def ahead(self, one: Expected, other: Expected) -> float:
        """Probability that the first top-1 is truly higher than the second: Student's t."""
        from scipy.special import stdtr  # imported here: errors alone do not need it

        error = max(hypot(one.error, other.error), _LEAST_ERROR)
        return float(stdtr(self.degrees, (one.top1 - other.top1) / error))

    def exceeded(self, one: Expected) -> float:
        """Top-1 in percent that the true one exceeds with a probability of 95 %: Student's t."""
        from scipy.special import stdtrit

        return one.top1 - float(stdtrit(self.degrees, 0.95)) * one.error

    def expected(self, trainings: Sequence[Sequence[float]]) -> list[Expected]:
        """What each network's own trainings tell; it has at least one, in percent."""
        means = np.array([fmean(scores) for scores in trainings])
        numbers = np.array([len(scores) for scores in trainings])
        errors = np.sqrt(self.dispersion * _binomial(means, self.num_images) / numbers)
        return list(map(Expected, means.tolist(), errors.tolist()))


def binomial_error(top1: float, num_images: int) -> float:
    """Standard error in points of one top-1 in percent, from the number of images alone."""
    return Noise(1.0, PRIOR_DEGREES, num_images).error(top1)


def wilson(right: int, number: int) -> tuple[float, float]:
    """95 % interval in percent of a share of `number` images of which `right` are answered rightly
    (Wilson 1927, Journal of the American Statistical Association 22(158))."""
    from scipy.stats import binomtest

    low, high = binomtest(right, number).proportion_ci(method="wilson")
    return 100.0 * float(low), 100.0 * float(high)


def measure(trainings: Sequence[Sequence[float]], num_images: int) -> Noise:
    """The noise of a run.

    Args:
        trainings: of each network, the top-1 in percent of its trainings, at least one.
        num_images: of the scoring split, at least 1.
    """
    repeated = [np.asarray(scores, dtype=float) for scores in trainings if len(scores) > 1]
    means = np.array([scores.mean() for scores in repeated])
    squares = np.array([((scores - scores.mean()) ** 2).sum() for scores in repeated])
    degrees = PRIOR_DEGREES + sum(len(scores) - 1 for scores in repeated)
    pooled = PRIOR_DEGREES + float((squares / _binomial(means, num_images)).sum())
    return Noise(pooled / degrees, degrees, num_images)


def chances_of(
    expected: Sequence[Expected], costs: Sequence[Sequence[float]], degrees: int
) -> _Array:
    """The probability of each of n networks to be on the front of the expected top-1.

    The result is exact up to quadrature. Networks with less than 0.001 at the pooled dispersion get
    0. What is expected of one network is independent of the others.

    Args:
        expected: of each network.
        costs: n rows of d exact costs, to be kept low. A network with a NaN cannot be compared: it
            is on no front, and nobody's rival.
        degrees: of freedom behind the errors.

    Returns:
        n probabilities.
    """
    means, errors = _columns(expected)
    table = _table(costs)
    chance = np.zeros(len(means))
    known = ~np.isnan(table).any(axis=1)
    near = np.flatnonzero(known & _contend(means, errors, table, degrees, _NEGLIGIBLE))
    if not len(near):
        return chance
    given = _Given(means[near], errors[near], table[near])
    kept = np.flatnonzero(given.chances(1.0, np.arange(len(near))) >= _NEGLIGIBLE)
    for scale, weight in zip(*_scales(degrees), strict=True):
        chance[near[kept]] += weight * given.chances(float(scale), kept)
    return np.clip(chance, 0.0, 1.0)


class _Given:
    """Chances for one dispersion after the other, on points of top-1 that all networks share.

    Args:
        means, errors: of n networks.
        costs: (n, d) of the same.
    """

    def __init__(self, means: _Array, errors: _Array, costs: _Array) -> None:
        self._means, self._errors, self._costs = means, errors, costs
        self._at = _points(means, errors)
        self._widths = np.gradient(self._at)

    def chances(self, scale: float, of: npt.NDArray[np.intp]) -> _Array:
        """Of the networks `of`, among all, when errors are `scale` times as large."""
        apart = (self._at - self._means[:, None]) / (scale * self._errors[:, None])
        density = self._widths * np.exp(-(apart[of] ** 2) / 2)
        density /= density.sum(axis=1, keepdims=True)
        rivals = np.asarray(self._costs[None] <= self._costs[of, None]).all(axis=2).astype(float)
        rivals[np.arange(len(of)), of] = 0.0
        beaten = np.exp(rivals @ np.interp(apart, _AT, _LOG_NORMAL))
        on_front: _Array = (density * beaten).sum(axis=1)
        return on_front


def _points(means: _Array, errors: _Array) -> _Array:
    """From far below all means to far above, a quarter of an error apart: it shrinks upwards."""
    order = np.argsort(means)
    steps = np.minimum.accumulate(errors[order][::-1])[::-1] / 4
    points = [float(means.min() - 9 * errors.max())]
    while points[-1] < means.max() + 9 * errors[order[-1]]:
        points.append(points[-1] + float(np.interp(points[-1], means[order], steps)))
    return np.array(points)


def contenders(
    trainings: Sequence[Sequence[float]], costs: Sequence[Sequence[float]], noise: Noise
) -> npt.NDArray[np.bool_]:
    """Which of n networks may be called plausible: an upper bound that is cheap to work out.

    A network's chance is at most that of beating any one rival; here, of beating each member of
    the front of the means with half of `PLAUSIBLE`. Arguments as in `chances`.
    """
    means, errors = _columns(noise.expected(trainings))
    return _contend(means, errors, _table(costs), noise.degrees, PLAUSIBLE / 2)


def _columns(expected: Sequence[Expected]) -> tuple[_Array, _Array]:
    """Means and their standard errors."""
    means, errors = np.array(expected, dtype=float).reshape(-1, 2).T
    return means, np.maximum(errors, _LEAST_ERROR)


def _table(costs: Sequence[Sequence[float]]) -> _Array:
    """Costs as (n, d); (0, 1) for none."""
    return np.asarray(costs, dtype=float).reshape(len(costs), -1 if len(costs) else 1)


def _binomial(top1: _Array, num_images: int) -> _Array:
    """Variance in squared points of one share in percent; as of one image at least, and not 0."""
    least = 1 / (num_images + 2)
    share = np.clip(top1 / 100, least, 1 - least)
    return 1e4 * share * (1 - share) / num_images


def _contend(
    means: _Array, errors: _Array, costs: _Array, degrees: int, chance: float
) -> npt.NDArray[np.bool_]:
    """Who beats each member of the front of the means with at least this chance."""
    from scipy.special import stdtrit  # imported here: errors alone do not need it

    left = np.ones(len(means), dtype=bool)
    cut = stdtrit(degrees, 1 - chance)
    for j in front(np.column_stack([-means, costs])):
        ahead = (means[j] - means) / np.hypot(errors, errors[j])
        left &= (costs < costs[j]).any(axis=1) | (ahead <= cut)
        left[j] = True
    return left


@cache
def _scales(degrees: int) -> tuple[_Array, _Array]:
    """Nodes of sqrt(phi / dispersion) and their weights: phi is inverse chi-squared.

    The trapezoidal rule on u = log(chi-squared / degrees), whose density is proportional to
    exp(degrees / 2 (u - exp(u))).
    """
    spread = sqrt(2 / degrees)
    u = np.linspace(-20 / degrees - 4 * spread, 4 * spread, 24)
    density = np.exp(degrees / 2 * (u - np.exp(u) + 1))
    return np.exp(-u / 2), density / density.sum()
