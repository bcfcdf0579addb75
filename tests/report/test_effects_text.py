"""What each choice buys, in words."""

from __future__ import annotations

import re
from pathlib import Path

from tests.report.runs import run_of
from tests.report.test_effects import run
from vitnas.report.effects_text import effect_views


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
