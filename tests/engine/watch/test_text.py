"""Numbers as a person reads them."""

from __future__ import annotations

import io

from tests.report.runs import trial
from vitnas.engine.watch.display import Display
from vitnas.engine.watch.pace import Pace
from vitnas.engine.watch.text import network_of, rates_text, replicates_text


def test_one_replicate_is_no_plural() -> None:
    assert [replicates_text(number) for number in (0, 1, 2)] == [
        "0 replicates",
        "1 replicate",
        "2 replicates",
    ]


def test_time_that_is_left_says_what_it_leaves_out() -> None:
    pace = Pace(1.25, 185.0)
    assert rates_text(pace) == "1.2 epochs/s, 3:05 left"
    assert rates_text(pace, baselines_follow=True) == "1.2 epochs/s, 3:05 left, then baselines"


def test_a_line_tells_the_image_size_where_it_is_searched() -> None:
    one = trial(0)
    assert network_of(one, sized=True) == f"{network_of(one)} | img_size 32"
    assert network_of(trial(0, config={}), sized=True) == ""
    for sized in (False, True):
        stream = io.StringIO()
        with Display(1, 3, stream, sized=sized) as display:
            display.listen("end", one)
        assert ("img_size 32" in stream.getvalue()) == sized
