"""The words of a comparison."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.report.runs import run_of, trial
from tests.report.test_compared import A, B, small
from vitnas.report.compared import compare
from vitnas.report.compared_text import (
    HEADS,
    budget_sentence,
    compared_text,
    differing_rows,
    gap_sentences,
    side_rows,
)


def test_a_clear_difference_and_one_that_is_none() -> None:
    (clear,) = gap_sentences(compare([small(A, 9.0), small(B)]))
    assert clear.startswith("At equal FLOPs the front of a is 9.00 points of expected top-1 above")
    assert "from 1.00 M to 8.00 M; a is ahead over 100 % of this range" in clear
    (below,) = gap_sentences(compare([small(A), small(B, 9.0)]))
    assert "9.00 points of expected top-1 below that of b" in below
    (same,) = gap_sentences(compare([small(A, 0.1), small(B)]))
    assert "the fronts of a and b cannot be told apart: +0.10 points" in same


def test_what_one_front_has_alone_is_told_and_leads_where_they_share_one_place() -> None:
    wide = run_of(Path("wide"), *(trial(n, 50.0 + n, 10**6 * 4**n) for n in range(3)))
    narrow = run_of(Path("narrow"), trial(0, 50.0, 10**6))
    (one,) = gap_sentences(compare([wide, narrow]))
    first = "Only wide has networks above 1.00 M FLOPs (up to 16.0 M). At equal FLOPs the fronts"
    assert one.startswith(first)
    longer = run_of(Path("longer"), *(trial(n, 50.0 + n, 10**6 * 4**n) for n in range(1, 4)))
    (two,) = gap_sentences(compare([wide, longer]))
    assert two.startswith("At equal FLOPs")
    assert two.endswith(
        "Only wide has networks below 4.00 M FLOPs (from 1.00 M on). "
        "Only longer has networks above 16.0 M FLOPs (up to 64.0 M)."
    )


def test_all_of_the_range_is_no_rounded_number() -> None:
    found = compare([small(A, 9.0), small(B)])
    most = replace(found, gaps=(replace(found.gaps[0], ahead=0.998),))
    assert "a is ahead over more than 99 % of this range" in gap_sentences(most)[0]


def test_test_scores_and_missing_intervals_are_told() -> None:
    one, other = (run_of(p, trial(0, 60.0, test_top1=t)) for p, t in ((A, 58.0), (B, 57.0)))
    assert (
        "On the test images the same difference is +1.00 points"
        in gap_sentences(compare([one, other]))[0]
    )
    assert "This is at 1.00 M FLOPs. On" in gap_sentences(compare([one, other]))[0]
    blind = compare([small(A, environment={}), small(B, environment={})])
    assert "without an interval" in gap_sentences(blind)[0]


def test_why_nothing_is_compared() -> None:
    assert gap_sentences(compare([small(A), run_of(B)])) == [
        "b has no network that was trained to the end."
    ]
    assert gap_sentences(compare([run_of(A), run_of(B)])) == [
        "a and b have no network that was trained to the end."
    ]
    apart = compare([small(A), run_of(B, trial(0, 60.0, 10**9))])
    assert gap_sentences(apart) == [
        "The fronts of a and b have no FLOPs in common, so they are not compared."
    ]
    far = run_of(Path("results/c"), trial(0, 60.0, 10**9))
    assert gap_sentences(compare([small(A, 9.0), small(B), far]))[1:] == [
        "The fronts of a and c have no FLOPs in common, so they are not compared.",
        "The fronts of b and c have no FLOPs in common, so they are not compared.",
    ]


def test_rows_have_a_cell_for_each_head() -> None:
    found = compare([small(A, 2.0), small(B), run_of(Path("results/c"))])
    rows = side_rows(found)
    assert {len(row) for row in rows} == {len(HEADS)}
    assert rows[0][:6] == ("a", "4", "77.00", "100.0", "4", "12")
    assert rows[2][:5] == ("c", "0", "–", "–", "0")
    assert all(len(row) == 4 for row in differing_rows(found))


def test_the_same_number_of_epochs_for_all() -> None:
    short = run_of(B, *small(B).trials[:2])
    text = budget_sentence(compare([small(A), short]))
    assert text.startswith("After 6 epochs each, as many as the shortest run has: a ")
    assert budget_sentence(compare([small(A), run_of(B)])) == ""


def test_the_terminal_has_all_of_it() -> None:
    text = compared_text(compare([small(A, 9.0), small(B, num_trials=9)]))
    for part in ("hypervolume %", "At equal FLOPs", "note: ", "what differs", "trials asked for"):
        assert part in text
    assert "what differs" not in compared_text(compare([small(A), small(B)]))
