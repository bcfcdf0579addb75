"""What each choice buys, in words."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import patch

from tests.report.runs import run_of
from tests.report.test_effects import run
from vitnas.report.effects import Effects
from vitnas.report.effects_text import effect_views
from vitnas.report.matched import Matched, Paired
from vitnas.report.page import render_pages


def test_the_report_has_them_as_text() -> None:
    view = effect_views(run())
    first = view["effects"][0]
    assert (first["name"], first["values"][0][0]) == ("stage 2: token_mixer", "mhsa")
    assert view["doubling"].startswith("+")
    point, interval = first["values"][0][1:]
    low, high = (float(end) for end in interval.split(" to "))
    assert low < float(point) < high
    low, high = (float(end) for end in first["gain_interval"].split(" to "))
    assert 0 < low < float(first["gain"]) < high
    told = re.fullmatch(r"\+(\S+) \(\+(\S+) to \+(\S+)\), (\d+) pairs", first["matched"])
    assert told
    points, least, most, pairs = map(float, told.groups())
    assert least < points < most
    assert pairs >= 3
    assert "–" in {one["matched"] for one in view["unclear_effects"]}, "too few pairs"
    assert view["unclear_effects"]
    assert effect_views(run_of(Path("a")))["effects"] == []


def test_what_pairs_alone_judge_and_what_nothing_does() -> None:
    pair = Paired((("[1,1]", 0.25), ("[1]", -0.25)), Matched(0.5, (-0.1, 1.1), 4))
    few = "no two values have three pairs of like FLOPs"
    unjudged = (("stages[0].nll_ratio", few), ("stem.act", few), ("gamma", "only one value"))
    found = Effects((), None, (("stages[1].groups", pair),), unjudged)
    with patch("vitnas.report.effects_text.effects_of", return_value=found):
        view = effect_views(run())
        pages = render_pages(run(), b"")
    (axis,) = view["paired_effects"]
    assert axis["name"] == "stage 2: groups"
    assert axis["values"] == [("[1,1]", "+0.25"), ("[1]", "−0.25")]
    assert axis["matched"] == "+0.50 (−0.10 to +1.10), 4 pairs"
    assert view["doubling"] == ""
    assert view["unjudged"] == [
        f"Not judged, because {few}: `stage 1: nll_ratio`, `stem.act`.",
        "Not judged, because only one value: `gamma`.",
    ]
    assert f"Not judged, because {few}: <code>stage 1: nll_ratio</code>" in pages.html
    assert view["unjudged"][0] in pages.markdown
    for page in (pages.html, pages.markdown):
        assert "+0.50 (−0.10 to +1.10), 4 pairs" in page
        assert "The model judges no choice of this run" in page
        assert "points for twice as many" not in page
