"""Times as a person reads them."""

from __future__ import annotations

import pytest

from vitnas.durations import clock, in_turns, span


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-3.0, "0:00"), (59.6, "1:00"), (75.0, "1:15"), (3723.0, "1:02:03"), (90_000.0, "25:00:00")],
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "10 s"), (24.0, "20 s"), (89.0, "90 s"), (180.0, "3 min"), (18_000.0, "5 h"),
     (172_800.0, "2 days")],
)  # fmt: skip
def test_span(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_workers_take_turns_and_no_more_work_than_there_is() -> None:
    assert in_turns(60, 60.0, 2) == 1800.0
    assert in_turns(1, 180.0, 4) == 180.0
