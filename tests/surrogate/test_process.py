"""The Gaussian process against the textbook."""

from __future__ import annotations

import numpy as np

from vitnas.surrogate.process import Process, Scales, kernel


def test_the_process_is_exact_while_all_observations_are_inducing() -> None:
    """Against the textbook's equations (Rasmussen and Williams 2006, Eq. 2.25 and 2.26)."""
    draw = np.random.default_rng(0)
    x, y, new = draw.normal(size=(30, 4)), draw.normal(size=30), draw.normal(size=(7, 4))
    extra, scales = draw.uniform(0, 1, 30), Scales(1.0, 0.3)
    process = Process(x, y, extra, np.arange(30), scales)
    mean, deviation = process.predict(new)
    noisy = kernel(x, x, 1.0) + np.diag(0.3 + extra)
    cross = kernel(new, x, 1.0)
    assert np.allclose(mean, cross @ np.linalg.solve(noisy, y), atol=1e-3)
    told = (cross * np.linalg.solve(noisy, cross.T).T).sum(axis=1)
    variance = np.diag(kernel(new, new, 1.0)) - told
    assert np.allclose(deviation**2 / deviation[0] ** 2, variance / variance[0], atol=1e-3)


def test_a_column_that_matters_everywhere_is_followed_beyond_what_was_seen() -> None:
    draw = np.random.default_rng(2)
    x = draw.uniform(-1, 1, size=(40, 3))
    told = Process(x, 2 * x[:, 0], np.zeros(40), np.arange(40), Scales(1.0, 0.1))
    low, high = told.predict(np.array([[1.0, 0, 0], [2.0, 0, 0]]))[0]
    assert high - low > 0.5


def test_fewer_inducing_observations_approximate_the_process() -> None:
    draw = np.random.default_rng(1)
    x = draw.normal(size=(300, 3))
    y = np.sin(x[:, 0]) + 0.1 * draw.normal(size=300)
    new = draw.normal(size=(50, 3))
    whole, part = (
        Process(x, y, np.zeros(300), np.arange(count), Scales(1.0, 0.1)).predict(new)[0]
        for count in (300, 120)
    )
    assert np.abs(whole - part).mean() < 0.1
    assert np.corrcoef(part, np.sin(new[:, 0]))[0, 1] > 0.95
