"""Numbers as a person reads them."""

from __future__ import annotations

from vitnas.engine.watch.pace import Pace
from vitnas.engine.watch.text import rates_text, replicates_text


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
