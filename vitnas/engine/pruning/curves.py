"""Predicts where a learning curve ends, from the finished curves of the same run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitnas.records import Outcome, TrialRecord
from vitnas.surrogate.odds import logit, percent

_Array = npt.NDArray[np.float64]
_RIDGE = 1.0
MIN_CURVES = 4


@dataclass(frozen=True)
class _Fit:
    """logit(end) = centre_y + slopes . (x - centre) + a residual, at one epoch."""

    centre: _Array
    slopes: _Array
    centre_y: float
    residuals: _Array  # left-one-out, ascending

    def expect(self, x: _Array) -> _Array:
        """Log-odds at the end for rows of `x`."""
        return self.centre_y + (x - self.centre) @ self.slopes


class CurveModel:
    """The last epoch's top-1 from what is known after an earlier one.

    At epoch e: logit(end) = a + b logit(best top-1 so far) + c log(FLOPs) + residual, by ridge
    regression over the trials trained to the end. It uses the best so far, because one bad epoch
    says little. It uses FLOPs, because they are exact, and early epochs say little.

    Args:
        trials: of a run; those that are complete are learned from.
    """

    def __init__(self, trials: Iterable[TrialRecord]) -> None:
        complete = [t for t in trials if t.outcome is Outcome.COMPLETE and t.curve]
        self.epochs = max((t.epochs for t in complete), default=0)
        complete = [t for t in complete if t.epochs == self.epochs]
        self._best = np.maximum.accumulate(np.array([t.curve for t in complete], ndmin=2), axis=1)
        self._ends = logit([t.curve[-1] for t in complete])
        self._costs = np.log([max(1, t.flops) for t in complete])
        self._fits: dict[int, _Fit] = {}

    @property
    def num_curves(self) -> int:
        """Curves that were learned from."""
        return len(self._ends)

    def expect(self, trials: Sequence[TrialRecord]) -> tuple[_Array, _Array]:
        """Log-odds of the last epoch's top-1 of each trial: mean and variance.

        With fewer than `MIN_CURVES` to learn from: no gain is expected, and nothing is certain.
        """
        seen = _seen(trials)
        mean, variance = seen[:, 0].copy(), np.ones(len(seen))
        if self.num_curves >= MIN_CURVES:
            epochs = np.array([trial.epochs for trial in trials])
            for epoch in np.unique(epochs):
                fit, here = self._at(int(epoch)), epochs == epoch
                mean[here] = fit.expect(seen[here])
                variance[here] = (fit.residuals**2).mean()
        return mean, variance

    def optimistic(self, trial: TrialRecord, confidence: float) -> float:
        """Percent that the last epoch's top-1 stays below, with `confidence`.

        The expected end plus the ceil((n + 1) confidence)-th smallest of the n leave-one-out
        residuals (a jackknife prediction interval's upper end: Barber et al. 2021, without their
        correction). Infinite while n is too small for that confidence, e.g. below 19 for 0.95.
        """
        rank = math.ceil((self.num_curves + 1) * confidence)
        if self.num_curves < MIN_CURVES or rank > self.num_curves:
            return math.inf
        fit = self._at(trial.epochs)
        return float(percent(fit.expect(_seen([trial]))[0] + fit.residuals[rank - 1]))

    def _at(self, epoch: int) -> _Fit:
        if epoch not in self._fits:
            x = np.stack([logit(self._best[:, epoch - 1]), self._costs], axis=1)
            self._fits[epoch] = _regress(x, self._ends)
        return self._fits[epoch]


def _seen(trials: Sequence[TrialRecord]) -> _Array:
    """Rows of what the end is judged by: log-odds of the best so far, log FLOPs."""
    best = logit([max(trial.curve) for trial in trials])
    return np.stack([best, np.log([max(1, trial.flops) for trial in trials])], axis=1)


def _regress(x: _Array, y: _Array) -> _Fit:
    """Ridge regression on centred columns, `_RIDGE` observations' worth towards no slope."""
    centre, centre_y = x.mean(axis=0), float(y.mean())
    moved = x - centre
    gram = moved.T @ moved
    gram += np.diag(_RIDGE * moved.var(axis=0) + 1e-9)
    weights = np.linalg.solve(gram, moved.T)
    slopes = weights @ (y - centre_y)
    leverage = 1 / len(y) + (moved * weights.T).sum(axis=1)
    residuals = (y - centre_y - moved @ slopes) / np.maximum(1 - leverage, 1e-6)
    return _Fit(centre, slopes, centre_y, np.sort(residuals))
