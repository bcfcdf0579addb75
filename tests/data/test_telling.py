"""The bar that shows how far reading is."""

from __future__ import annotations

import pytest

from vitnas.data.telling import SILENT, Bar, scoring_text


def test_the_bar_grows_and_tells_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    lines: list[str] = []
    bar = Bar(lines.append, 2000)
    bar(0)
    now[0] = 30.0
    bar(500)
    bar(2000)
    assert lines == [
        f"decoding 2,000 images {'┄' * 24} 0%",
        f"decoding 2,000 images {'━' * 6}{'┄' * 18} 25%, 1:30 left",
        f"decoding 2,000 images {'━' * 24} 100%, 0:00 left",
    ]


def test_which_images_score_is_told() -> None:
    assert scoring_text(12_000, None) == "12,000 held out of train"
    assert scoring_text(359, "test") == "the 359 of test"


def test_nobody_need_listen() -> None:
    SILENT.notice("something")
    SILENT.doing("something")
