"""What reading images tells whoever watches: what will be read, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from vitnas.durations import clock

Tell = Callable[[str], None]
_WIDTH = 24  # characters of the bar


def _ignore(line: str) -> None:
    pass


@dataclass(frozen=True)
class Teller:
    """Who is told.

    Attributes:
        notice: called with lines that stay.
        doing: called with what is done now; the next line replaces it.
    """

    notice: Tell = _ignore
    doing: Tell = _ignore


SILENT = Teller()


class Bar:
    """Tells how many of `total` images are decoded; call it with their number.

    Args:
        doing: told a line each time.
        total: of all images.
    """

    def __init__(self, doing: Tell, total: int) -> None:
        self._doing, self._total, self._began = doing, total, time.monotonic()

    def __call__(self, done: int) -> None:
        share = done / self._total
        filled = round(_WIDTH * share)
        bar = "━" * filled + "┄" * (_WIDTH - filled)
        line = f"decoding {self._total:,} images {bar} {share:.0%}"
        if done:
            left = (time.monotonic() - self._began) * (self._total - done) / done
            line += f", {clock(left)} left"
        self._doing(line)
