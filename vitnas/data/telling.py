"""What reading images tells whoever watches: what will be read, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from vitnas.durations import clock

Tell = Callable[[str], None]
_WIDTH = 24  # characters of the bar


def ignore(*told: object) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Teller:
    """Who is told.

    Attributes:
        notice: called with lines that stay.
        doing: called with what is done now; the next line replaces it.
    """

    notice: Tell = ignore
    doing: Tell = ignore


SILENT = Teller()


def scoring_text(number: int, val_split: str | None) -> str:
    """Which images score: `287 held out of train`, `the 359 of test`.

    Args:
        number: of these images.
        val_split: the data's own part that they are; None = they are held out of the training
            images.
    """
    return f"the {number:,} of {val_split}" if val_split else f"{number:,} held out of train"


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
