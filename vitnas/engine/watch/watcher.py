"""Who is told how a search goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vitnas.data.telling import Tell, Teller, ignore
from vitnas.records import TrialRecord

Listener = Callable[[str, TrialRecord], None]
"""Called with `known` (from an earlier session or another run), `start`, `epoch` or `end` and the
trial as it then stands."""


@dataclass(frozen=True)
class Watcher(Teller):
    """Who is told how a search goes: by default nobody.

    Attributes:
        listener: called with every change of a trial; for displays.
        ended: called with a line for each baseline that has ended.
        scored_by: called with the number of scoring images, once they are read.
        searched: called once all trials have ended, if there are baselines still to train.
    """

    listener: Listener = ignore
    ended: Tell = ignore
    scored_by: Callable[[int], None] = ignore
    searched: Callable[[], None] = ignore


UNWATCHED = Watcher()
