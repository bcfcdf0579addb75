"""Gaussian process regression that stays fast with thousands of observations; numpy only.

Symbols, with their names in the code:

    n, m, d       observations, inducing observations, columns
    X   (n, d)    `x`: a network a row, columns standardised
    Z   (m, d)    `_at`: the rows of X that carry the function
    y   (n,)      `y`: targets, standardised
    s^2           `_scale` squared: variance of the function
    l             `Scales.length`
    nu            `Scales.noise`: variance of an observation's noise as a share of s^2
    e   (n,)      `extra`: noise variances on top of nu, in the same unit
    k(a, b)       `kernel`: covariance of the function at two rows, over s^2
    Kzz, Kzx      k at Z and Z (m, m), at Z and X (m, n); J = 1e-6 I (`_JITTER`)

Model: y_i = f(x_i) + noise_i, f ~ GP(0, s^2 k), noise_i ~ N(0, s^2 (nu + e_i)).

    r         = sqrt(5 / d) |a - b| / l
    k(a, b)   = ((1 + r + r^2 / 3) exp(-r) + a . b / d) / 2          Matern 5/2 and linear, halves
    W         = L^-1, L L^T = Kzz + J                                `_whiten`
    w         = 1 / sqrt(nu + e)                                     `weight`
    A         = W Kzx diag(w)         (m, n)                         `seen`
    S         = C^-1, C C^T = I + A A^T                              `_shrink`
    t         = S A (w y)             (m,)                           `told`
    mean(x)   = t^T S W kzx                                          `_mean` = t^T S
    var(x)    = s^2 (k(x, x) - |W kzx|^2 + |S W kzx|^2)
    s^2       = (|w y|^2 - |t|^2 + 2) / (n + 2)                      two observations' worth of 1

With Z = X that is exact regression; else it is the deterministic training conditional (see
`Process`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]
LENGTHS = (0.5, 1.0, 2.0)
NOISES = (0.1, 0.3, 0.6)
_JITTER = 1e-6


@dataclass(frozen=True)
class Scales:
    """Hyper-parameters, for standardised targets.

    Attributes:
        length: distance over which the function changes, in root mean square of the columns.
        noise: variance of an observation's noise as a share of the function's.
    """

    length: float = 1.0
    noise: float = 0.3


def kernel(a: _Array, b: _Array, length: float) -> _Array:
    """Covariance of the function at the rows of `a` (n, d) and `b` (m, d): (n, m).

    Half Matern 5/2, half linear, so that a column's own effect is learned from few observations
    and extrapolates; the Matern half describes interactions of columns.
    """
    product = a @ b.T
    columns = max(1, a.shape[1])
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * product
    r = np.sqrt(np.maximum(square, 0.0) * (5 / (columns * length * length)))
    mixed: _Array = 0.5 * ((1 + r + r * r / 3) * np.exp(-r) + product / columns)
    return mixed


def prior_variance(x: _Array) -> _Array:
    """`kernel` of each row of `x` with itself."""
    variance: _Array = 0.5 * (1 + (x * x).sum(axis=1) / max(1, x.shape[1]))
    return variance


def choose_scales(x: _Array, y: _Array, extra: _Array) -> Scales:
    """The most likely of a grid of hyper-parameters; the function's variance is integrated out.

    Args:
        x: (n, d) standardised columns.
        y: (n,) standardised targets.
        extra: (n,) noise variances that come on top of the common one.
    """
    best = (-np.inf, Scales())
    for length in LENGTHS:
        covariance = kernel(x, x, length)
        for noise in NOISES:
            factor = np.linalg.cholesky(covariance + np.diag(noise + extra + _JITTER))
            white = np.linalg.solve(factor, y)
            likelihood = -0.5 * len(y) * log(_variance(white)) - np.log(np.diag(factor)).sum()
            best = max(best, (float(likelihood), Scales(length, noise)), key=lambda pair: pair[0])
    return best[1]


def _variance(white: _Array) -> float:
    """Of the function, from whitened targets, with two observations' worth of belief in 1."""
    return float((white @ white + 2) / (len(white) + 2))


class Process:
    """The function behind noisy observations.

    Exact while all observations are inducing; otherwise their deterministic training conditional
    (Seeger et al. 2003; Quinonero-Candela and Rasmussen 2005, Eq. 20), which costs n m^2 for n
    observations and m inducing ones instead of n^3.

    Args:
        x: (n, d) standardised columns.
        y: (n,) standardised targets.
        extra: (n,) noise variances that come on top of the common one.
        inducing: indices of the observations that carry the function.
        scales: hyper-parameters.
    """

    def __init__(
        self, x: _Array, y: _Array, extra: _Array, inducing: npt.NDArray[np.intp], scales: Scales
    ) -> None:
        self._at, self._length = x[inducing], scales.length
        size = len(inducing)
        covariance = kernel(self._at, self._at, scales.length) + _JITTER * np.eye(size)
        self._whiten = np.linalg.inv(np.linalg.cholesky(covariance))
        weight = 1 / np.sqrt(scales.noise + extra)
        seen = (self._whiten @ kernel(self._at, x, scales.length)) * weight
        factor = np.linalg.cholesky(np.eye(size) + seen @ seen.T)
        self._shrink = np.linalg.inv(factor)
        told = self._shrink @ (seen @ (weight * y))
        self._mean = told @ self._shrink
        rest = weight * y
        explained = float(rest @ rest - told @ told)
        self._scale = sqrt((max(explained, 0.0) + 2) / (len(y) + 2))

    def predict(self, x: _Array) -> tuple[_Array, _Array]:
        """Mean and standard deviation of the function at rows of `x` (m, d), noise not included."""
        seen = self._whiten @ kernel(self._at, x, self._length)
        known = self._shrink @ seen
        variance = prior_variance(x) - (seen * seen).sum(axis=0) + (known * known).sum(axis=0)
        return self._mean @ seen, self._scale * np.sqrt(np.maximum(variance, _JITTER))
