"""Who is told how a search goes."""

from __future__ import annotations

from vitnas.engine.watch.watcher import UNWATCHED, Watcher
from vitnas.records import Outcome, TrialRecord


def test_by_default_nobody_is_told() -> None:
    UNWATCHED.listener("end", TrialRecord(0, outcome=Outcome.COMPLETE))
    UNWATCHED.notice("a line")
    UNWATCHED.doing("a line")
    UNWATCHED.ended("a line")
    UNWATCHED.scored_by(287)
    UNWATCHED.searched()


def test_what_is_not_given_is_told_to_nobody() -> None:
    told: list[str] = []
    watcher = Watcher(ended=told.append)
    watcher.notice("a notice")
    watcher.ended("a baseline")
    assert told == ["a baseline"]
