"""Numbers as people read them."""

import math

import pytest

from vitnas.report.text import (
    bytes_text,
    count_text,
    duration_text,
    interval_text,
    percent_text,
    plural,
    signed_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (999, "999"),
        (999.6, "1.00 k"),
        (1000, "1.00 k"),
        (41_249_000, "41.2 M"),
        (999_600, "1.00 M"),
        (99_950, "100 k"),
        (1.1e9, "1.10 G"),
        (2e12, "2.00 T"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_counts_have_three_digits(value: float | None, text: str) -> None:
    assert count_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (59, "59 s"),
        (61, "1 min"),
        (3599, "1 h"),
        (4210, "1 h 10 min"),
        (3600 * 48, "2 d"),
        (3600 * 49.9, "2 d 1 h"),
        (None, "–"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def test_percent_and_points() -> None:
    assert percent_text(81.236) == "81.24"
    assert percent_text(None) == percent_text(math.nan) == signed_text(None) == "–"
    assert signed_text(0.5) == "+0.50"
    assert signed_text(-0.5) == "−0.50"


def test_words() -> None:
    assert plural(1, "trial") == "1 trial"
    assert plural(1200, "trial") == "1,200 trials"
    assert plural(2, "property") == "2 properties"
    assert bytes_text(2_040_000) == "2.0 MB"
    assert bytes_text(12_345) == "12 kB"


def test_no_difference_has_no_minus() -> None:
    assert signed_text(-0.004) == signed_text(0.0) == "+0.00"
    assert signed_text(-0.2, 0) == "+0"
    assert interval_text(0.2, 0.1) == "+0.00 to +0.40"
    assert interval_text(-1.0, 0.5) == "−1.98 to −0.02"
