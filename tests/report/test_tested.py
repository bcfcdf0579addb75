"""The front by test images: who stays, who falls off, and how optimistic scores are."""

from __future__ import annotations

import csv
import io
from math import hypot
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from vitnas.noise import binomial_error
from vitnas.records import TrialRecord
from vitnas.report.front_figure import front_figure
from vitnas.report.page import render_pages
from vitnas.report.tables import front_csv
from vitnas.report.tested import compare_by_test, comparison_text
from vitnas.run import Run

PATH = Path("results/small")


def scored(*tests: float | None, **more: Any) -> Run:
    """A front of members that score 60, 62, 64 ... percent, with these test scores."""
    trials: list[TrialRecord] = [
        trial(n, 60.0 + 2 * n, (n + 1) * 1_000_000, test_top1=test) for n, test in enumerate(tests)
    ]
    return run_of(PATH, *trials, **more)


def test_a_front_without_test_scores_is_not_compared() -> None:
    run = scored(None, None)
    assert compare_by_test(run) is None
    assert comparison_text(None).startswith("No front member has a test top-1.")
    assert "Front<br>by test" not in render_pages(run, b"").html


def test_members_fall_off_behind_the_best_that_dominates_them() -> None:
    found = compare_by_test(scored(61.0, 59.0, 63.0, 62.0, None))
    assert found is not None
    assert found.beaten_by == {1: 0, 3: 2}
    assert (found.num_members, found.least, found.most) == (4, -1.0, 4.0)
    text = comparison_text(found)
    assert text.startswith(
        "By test top-1 2 of 4 front members stay on the front; trial 1 (behind 0) and trial 3 "
        "(behind 2) fall off. Test scores scatter, too, and no other network has one. 1 front "
        "member has no test top-1 yet."
    )


def test_of_equal_test_scores_the_cheaper_stays() -> None:
    found = compare_by_test(scored(61.0, 61.0))
    assert found is not None
    assert found.beaten_by == {1: 0}


def test_dominance_takes_all_costs_together() -> None:
    costs = {"objectives": {"top1": "maximize", "flops": "minimize", "num_params": "minimize"}}
    members = [
        trial(0, 60.0, 1_000_000, num_params=50_000, test_top1=66.0),
        trial(1, 62.0, 2_000_000, num_params=40_000, test_top1=59.0),
    ]
    found = compare_by_test(run_of(PATH, *members, space=costs))
    assert found is not None
    assert not found.beaten_by
    assert "By test top-1 both front members stay" in comparison_text(found)
    assert "yet" not in comparison_text(found)


def test_the_gap_has_the_error_of_both_splits() -> None:
    found = compare_by_test(scored(59.0, 61.0))
    assert found is not None
    assert found.interval is not None
    errors = [hypot(binomial_error(t, 5000), binomial_error(t, 10000)) for t in (59.0, 61.0)]
    half = 1.96 * sum(errors) / 2
    assert found.gap == pytest.approx(1.0)
    assert found.interval == pytest.approx((1.0 - half, 1.0 + half))
    assert found.expected_gap is not None


def test_the_interval_holds_the_truth_where_all_members_share_their_images() -> None:
    """Of 400 pairs of draws of images, for networks that err on the same images."""
    draw, held = np.random.default_rng(0), 0
    images = {**ENVIRONMENT["data"], "num_val_images": 300, "num_test_images": 200}
    for _ in range(400):
        hard = [draw.random(number) for number in (300, 200)]
        scores, tests = ([100 * float((x < p).mean()) for p in (0.8, 0.85)] for x in hard)
        members = [
            trial(n, scores[n], (n + 1) * 10**6, test_top1=tests[n], config={}) for n in range(2)
        ]
        found = compare_by_test(run_of(PATH, *members, environment={**ENVIRONMENT, "data": images}))
        assert found is not None
        assert found.interval is not None
        held += found.interval[0] <= 0.0 <= found.interval[1]
    assert 0.92 < held / 400 < 0.98


def test_without_the_number_of_images_there_is_no_interval() -> None:
    found = compare_by_test(scored(59.0, 61.0, environment={}))
    assert found is not None
    assert found.interval is None
    assert "95 %" not in comparison_text(found)


def test_pages_and_table_have_the_column() -> None:
    run = scored(61.0, 59.0, 63.0, None)
    pages = render_pages(run, b"")
    assert pages.html.count('data-label="Front by test">stays<') == 2
    assert pages.html.count('data-label="Front by test">behind 0<') == 1
    assert "| 61.00 | stays |" in pages.markdown
    rows = csv.DictReader(io.StringIO(front_csv(run)))
    assert [row["test_front"] for row in rows] == ["1", "0", "1", ""]
    assert "test_front" not in front_csv(scored(None))


def test_the_members_lie_between_two_fronts() -> None:
    """At each member's FLOPs: the best test top-1 of those as cheap, the worst of those as dear."""
    found = compare_by_test(scored(61.0, 59.0, 63.0, 62.0))
    assert found is not None
    assert found.ends == {0: (59.0, 61.0), 1: (59.0, 61.0), 2: (62.0, 63.0), 3: (62.0, 63.0)}
    assert (
        "Their mean test top-1 is 61.25 %; it would be 62.00 % with the best of them by test at "
        "each cost (the optimistic test front) and 60.50 % with the worst (the pessimistic one)."
    ) in comparison_text(found)
    all_stay = compare_by_test(scored(59.0, 61.0))
    assert all_stay is not None
    assert "optimistic test front" not in comparison_text(all_stay)


def test_both_fronts_are_drawn_on_request() -> None:
    lines = {trace["name"]: trace for trace in drawn(scored(61.0, 59.0, 63.0, 62.0))}
    assert lines["optimistic front by test"]["y"] == [61.0, 61.0, 63.0, 63.0, 63.0]
    assert lines["pessimistic front by test"]["y"] == [59.0, 59.0, 62.0, 62.0, 62.0]
    assert lines["optimistic front by test"]["visible"] == "legendonly"
    for run in (scored(59.0, 61.0), scored(None, None)):
        assert not any("by test" in trace["name"] for trace in drawn(run))


def drawn(run: Run) -> list[dict[str, Any]]:
    figure = front_figure(run)
    assert figure is not None
    return figure.data
