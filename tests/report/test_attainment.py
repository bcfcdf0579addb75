"""Drawn fronts: what they attain, and how far they are apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vitnas.report.attainment import attained

Table = npt.NDArray[np.float64]


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Table, Table, float]:
    """Draws of top-1, log costs of which some may be equal, and the end of their range."""
    number, networks = draw(st.integers(1, 12)), draw(st.integers(1, 6))
    top1 = draw(arrays(float, (number, networks), elements=st.floats(0, 100)))
    costs = np.array(draw(st.lists(st.integers(0, 5), min_size=networks, max_size=networks)), float)
    return top1, costs, float(costs.max()) + draw(st.integers(0, 2))


@given(drawn())
def test_lines_are_in_order_and_rise_with_the_cost(given_: tuple[Table, Table, float]) -> None:
    top1, costs, end = given_
    found = attained(top1, costs, end)
    assert found.log_costs.tolist() == sorted(set(costs.tolist()))
    assert (found.low <= found.median + 1e-9).all()
    assert (found.median <= found.high + 1e-9).all()
    for line in (found.low, found.median, found.high, found.middle):
        assert (np.diff(line) >= -1e-9).all()


@given(drawn())
def test_the_middle_has_the_mean_area_and_nothing_is_nearer_than_no_distance(
    given_: tuple[Table, Table, float],
) -> None:
    top1, costs, end = given_
    found = attained(top1, costs, end)
    at = found.log_costs
    best = np.array([[row[costs <= cost].max() for cost in at] for row in top1])
    widths = np.diff(at, append=end)
    shares = widths / widths.sum() if widths.sum() else np.full(len(at), 1 / len(at))
    assert found.middle @ shares == pytest.approx(float((best @ shares).mean()), abs=1e-6)
    apart = np.abs(best - found.middle) @ shares
    assert found.deviation == pytest.approx(float(apart.mean()), abs=1e-9)


@given(drawn())
def test_without_noise_there_is_the_plain_front_and_no_deviation(
    given_: tuple[Table, Table, float],
) -> None:
    top1, costs, end = given_
    found = attained(np.repeat(top1[:1], 5, axis=0), costs, end)
    plain = [top1[0][costs <= cost].max() for cost in found.log_costs]
    for line in (found.low, found.median, found.high, found.middle):
        assert line == pytest.approx(plain)
    assert found.deviation == pytest.approx(0.0, abs=1e-9)


@given(drawn())
def test_the_order_of_networks_does_not_matter(
    given_: tuple[Table, Table, float],
) -> None:
    top1, costs, end = given_
    order = np.arange(len(costs))[::-1]
    one, other = attained(top1, costs, end), attained(top1[:, order], costs[order], end)
    for a, b in zip(one, other, strict=True):
        assert a == pytest.approx(b)


def test_one_network_by_hand() -> None:
    """Its middle is the mean; from there 98, 99 and 103 are 2, 1 and 3 points away."""
    found = attained(np.array([[98.0], [99.0], [103.0]]), np.array([2.0]), 2.0)
    assert found.middle == pytest.approx([100.0])
    assert found.deviation == pytest.approx(2.0)
    assert found.median == pytest.approx([99.0])


def test_where_fronts_agree_nothing_is_counted() -> None:
    """They differ by two points over a quarter of the range, and by none over the rest."""
    top1 = np.array([[50.0, 60.0, 80.0], [50.0, 62.0, 80.0]])
    found = attained(top1, np.array([0.0, 1.0, 2.0]), 4.0)
    assert found.middle == pytest.approx([50.0, 61.0, 80.0])
    assert found.deviation == pytest.approx(0.25)
