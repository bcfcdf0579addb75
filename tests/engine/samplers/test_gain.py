"""Expected hypervolume improvement against differences of hypervolumes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.engine.samplers.gain import cut_budgets, expected_gain
from vitnas.pareto import hypervolume

points = st.lists(
    st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 30)), min_size=0, max_size=8
)


@given(points, st.tuples(st.integers(1, 25), st.integers(1, 25), st.integers(0, 35)))
def test_a_certain_accuracy_gains_exactly_its_hypervolume(
    known: list[tuple[int, int, int]], here: tuple[int, int, int]
) -> None:
    """With one scenario the expected gain is the difference of two hypervolumes; 3 objectives."""
    worst, floor = np.array([20.0, 20.0]), 0.0
    table = np.array(known, dtype=float).reshape(-1, 3)
    budgets = cut_budgets(table[:, :2], table[:, 2], worst, floor)
    costs = np.array([here[:2]], dtype=float)
    gain = expected_gain(costs, np.array([[float(here[2])]]), np.ones(1), budgets)[0]
    volumes = [
        hypervolume([(a, b, -c) for a, b, c in rows], (20.0, 20.0, -floor))
        for rows in (known, [*known, here])
    ]
    assert gain == pytest.approx(volumes[1] - volumes[0])
