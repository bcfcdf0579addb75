"""Columns of text: aligned, whole, and taken literally."""

from __future__ import annotations

from vitnas.columns import columns

ROWS = [
    ("name", "FLOPs", "network"),
    ("a", "41.2 M", "2x mhsa 64 [8,2][4,1] nll 1"),
    ("bcdef", "7", ""),
]


def test_numbers_are_right_and_words_left() -> None:
    assert columns(ROWS, left=(0, -1)) == [
        "name    FLOPs  network",
        "a      41.2 M  2x mhsa 64 [8,2][4,1] nll 1",
        "bcdef       7",
    ]


def test_nothing_is_cut_and_nothing_is_markup() -> None:
    long = "x " * 300 + "[red]end[/red] :smile:"
    assert columns([("head",), (long,)]) == ["head", long]


def test_a_wide_letter_takes_two_places() -> None:
    assert columns([("データ", "1"), ("ab", "2")]) == ["データ  1", "ab      2"]
