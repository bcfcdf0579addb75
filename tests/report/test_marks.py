"""Axes and marks of the plots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.baselines.families import FAMILIES
from vitnas.config.mixers import MIXERS
from vitnas.report.marks import (
    and_text,
    baseline_shape,
    colour,
    cost_range,
    cost_ticks,
    mark_size,
    shape,
    top1_range,
)

costs = st.floats(1.0, 1e12)


def test_every_mixer_has_a_mark_of_its_own_and_unknown_ones_have_one() -> None:
    assert len({(colour(mixer), shape(mixer)) for mixer in MIXERS}) == len(MIXERS)
    assert colour("somebody's") == colour("")


def test_every_family_of_baselines_has_a_mark_of_its_own() -> None:
    for marks in zip(*map(baseline_shape, range(len(FAMILIES))), strict=True):
        assert len(set(marks)) == len(FAMILIES)


@given(costs, costs)
def test_labels_lie_inside_and_there_are_two_at_least(one: float, two: float) -> None:
    low, high = cost_range(min(one, two), max(one, two))
    assert low < min(one, two) <= max(one, two) < high
    values, texts = cost_ticks("flops", low, high)
    assert len(values) == len(texts) >= 2
    assert values == sorted(values)
    assert low <= values[0] <= values[-1] <= high * (1 + 1e-9)


def test_the_front_is_shown_and_a_poor_network_may_fall_below() -> None:
    found = top1_range([10.0, *[80.0 + k / 10 for k in range(40)]], [82.0, 83.9])
    assert found is not None
    assert 70 < found[0] < 80
    assert found[1] > 83.9
    assert top1_range([], []) is None


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["flops"], "FLOPs"),
        (["flops", "num_params"], "FLOPs and parameters"),
        (["flops", "num_params", "latency_ms"], "FLOPs, parameters and latency"),
    ],
)
def test_costs_in_words(names: list[str], text: str) -> None:
    assert and_text(names) == text


@pytest.mark.parametrize(("low", "high"), [(1e6, 1e6), (3e6, 8e6), (2e5, 3e9), (1e6, 1.01e6)])
def test_axes_have_ticks_inside(low: float, high: float) -> None:
    ends = cost_range(low, high)
    positions, labels = cost_ticks("flops", *ends)
    assert ends[0] < low <= high < ends[1]
    assert 2 <= len(positions) == len(labels) <= 9
    assert all(ends[0] <= position <= ends[1] for position in positions)


def test_a_triangle_is_drawn_larger_than_a_disc_to_look_as_large() -> None:
    assert mark_size("mhsa", 7.5) == 7.5
    assert mark_size("dwconv", 7.5) > mark_size("cska", 7.5) > 7.5
