"""Log-odds of an accuracy, in which a step near 100 % counts for more."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]
LEAST = 0.5
"""Percent; nearer to 0 or 100 a logit says more than some hundreds of images can tell."""
MOST = 99.8


def logit(top1: npt.ArrayLike, least: float = LEAST, most: float = MOST) -> _Array:
    """Percent -> log-odds; values beyond `least` and `most` count as these."""
    share = np.clip(np.asarray(top1, dtype=np.float64), least, most) / 100
    return np.log(share / (1 - share))


def percent(odds: npt.ArrayLike) -> _Array:
    """Log-odds -> percent, the inverse of `logit`."""
    return 100 / (1 + np.exp(-np.asarray(odds, dtype=np.float64)))


def points(top1: npt.ArrayLike) -> _Array:
    """Points of top-1 that one unit of log-odds is worth at these percents."""
    share = np.asarray(top1, dtype=np.float64) / 100
    return 100 * share * (1 - share)
