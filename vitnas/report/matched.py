"""Matched pairs: two values of an axis, compared by trained networks of like FLOPs alone.

A pair is a network with one value and one with the other whose FLOPs differ by at most 10 %. Each
network is in one pair at most. Of all ways to pair them it is one with the most pairs, and then
with the fewest other answers that differ (assignment problem). So no model is asked; but the other
answers scatter, and the search did not choose them by lot.

The interval of the mean difference is Student's t from the scatter of the pairs. Where few pairs
agree by luck, their standard deviation counts as at least that of the noise of both trainings.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import inf, isfinite, log, sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.special import stdtrit

from vitnas.noise import Noise
from vitnas.records import TrialRecord

LIKE = 1.1
"""FLOPs of a pair differ by this factor at most."""
_FEWEST_PAIRS, _MOST_NETWORKS = 3, 250
_NO_PAIR = 1e6


class Matched(NamedTuple):
    """What the pairs say of two values.

    Attributes:
        points: top-1 of the networks with the one value minus that of the others, the mean.
        interval: of it, 95 %.
        pairs: their number, at least 3.
    """

    points: float
    interval: tuple[float, float]
    pairs: int

    def turned(self) -> Matched:
        """The same of the other value against the one."""
        low, high = self.interval
        return Matched(-self.points, (-high, -low), self.pairs)


class Paired(NamedTuple):
    """What the pairs say of the values of an axis.

    Attributes:
        values: those that can be paired with another one, each with the mean of its differences
            from these others and from itself, in points of top-1; the best first.
        ends: the best value against the worst; None where these two have too few pairs.
    """

    values: tuple[tuple[Any, float], ...]
    ends: Matched | None


class Matching:
    """The trained networks of a run, ready to be paired.

    Args:
        trials: complete ones; those without a finite top-1 or without FLOPs are left out.
        noise: of the run.
    """

    def __init__(self, trials: Sequence[TrialRecord], noise: Noise) -> None:
        self._trials = [t for t in trials if t.flops > 0 and isfinite(_top1(t))]
        self._noise = noise
        self._logs = np.array([log(trial.flops) for trial in self._trials])
        self._given = [_answers(trial) for trial in self._trials]
        questions = sorted({name for answers in self._given for name in answers})
        self._place = {name: index for index, name in enumerate(questions)}
        self._answers = np.array([self._codes(name) for name in questions]).T

    def _codes(self, question: str) -> list[int]:
        """(networks,) a number for each answer; one for all that were not asked."""
        known: dict[str, int] = {}
        said = [repr(answers.get(question)) for answers in self._given]
        return [known.setdefault(answer, len(known)) for answer in said]

    def between(self, name: str, one: Any, other: Any) -> Matched | None:
        """What the pairs say of two values of the axis `name`; None below three pairs."""
        rows, columns = self._with(name, one), self._with(name, other)
        if not rows or not columns:
            return None
        costs = self._costs(name, rows, columns)
        chosen = zip(*linear_sum_assignment(costs), strict=True)
        found = [(rows[i], columns[j]) for i, j in chosen if costs[i, j] < _NO_PAIR]
        return self._said(found) if len(found) >= _FEWEST_PAIRS else None

    def judged(self, name: str, values: Sequence[Any]) -> Paired | None:
        """What the pairs say of all values of the axis `name`; None where no two can be paired."""
        found: dict[tuple[int, int], Matched] = {}
        for one, other in combinations(range(len(values)), 2):
            if (matched := self.between(name, values[one], values[other])) is not None:
                found |= {(one, other): matched, (other, one): matched.turned()}
        differences: dict[int, list[float]] = {}
        for (one, _), matched in found.items():
            differences.setdefault(one, [0.0]).append(matched.points)
        means = {place: fmean(points) for place, points in differences.items()}
        if not means:
            return None
        order = sorted(means, key=lambda place: -means[place])
        shown = tuple((values[place], means[place]) for place in order)
        return Paired(shown, found.get((order[0], order[-1])))

    def number_of(self, name: str) -> int:
        """How many different values of the axis `name` the networks have."""
        return len({repr(answers[name]) for answers in self._given if name in answers})

    def _with(self, name: str, value: Any) -> list[int]:
        """The networks with a value; of many, some, evenly over their numbers."""
        found = [i for i, answers in enumerate(self._given) if answers.get(name) == value]
        return found[:: -(-len(found) // _MOST_NETWORKS)] if found else []

    def _costs(
        self, name: str, rows: Sequence[int], columns: Sequence[int]
    ) -> npt.NDArray[np.float64]:
        """(rows, columns) the number of other answers that differ, then the FLOPs."""
        others = np.delete(self._answers, self._place[name], axis=1)
        differ = (others[rows][:, None] != others[columns][None]).sum(axis=2)
        apart = np.abs(self._logs[rows][:, None] - self._logs[columns][None])
        return np.where(apart <= log(LIKE), differ + apart, _NO_PAIR)

    def _said(self, pairs: Sequence[tuple[int, int]]) -> Matched:
        tops = [(_top1(self._trials[i]), _top1(self._trials[j])) for i, j in pairs]
        points = [one - other for one, other in tops]
        noise = sqrt(fmean(self._error(i) ** 2 + self._error(j) ** 2 for i, j in pairs))
        error = max(stdev(points), noise) / sqrt(len(pairs))
        reach = float(stdtrit(len(pairs) - 1, 0.975)) * error
        mean = fmean(points)
        return Matched(mean, (mean - reach, mean + reach), len(pairs))

    def _error(self, index: int) -> float:
        trial = self._trials[index]
        return self._noise.error(_top1(trial), max(1, len(trial.trainings)))


def _answers(trial: TrialRecord) -> dict[str, Any]:
    """By the name of the axis, also where earlier answers had narrowed it (`groups@0,1`)."""
    return {name.partition("@")[0]: value for name, value in trial.params.items()}


def _top1(trial: TrialRecord) -> float:
    """Its scores, not what a model expects; infinite without any."""
    return inf if trial.top1 is None else trial.top1
