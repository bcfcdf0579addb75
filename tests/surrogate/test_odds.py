"""Log-odds and percent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.surrogate.odds import logit, percent, points


@given(st.floats(0.5, 99.8))
def test_log_odds_and_percent_are_inverse(top1: float) -> None:
    assert float(percent(logit(top1))) == pytest.approx(top1)


def test_beyond_what_images_can_tell_odds_do_not_grow() -> None:
    assert float(logit(100.0)) == float(logit(99.8))
    assert float(logit(0.0)) == float(logit(0.5))
    assert float(logit(50.0)) == 0.0


@given(st.floats(5, 95))
def test_points_are_the_slope_of_percent(top1: float) -> None:
    step = 1e-6
    rise = float(percent(logit(top1) + step)) - top1
    assert rise / step == pytest.approx(float(points(top1)), rel=1e-4)
