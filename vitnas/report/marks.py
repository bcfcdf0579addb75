"""Colours, shapes and axis ticks of both plots, so that a mixer looks the same in each."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from vitnas.config.costs import COSTS, EXACT, amount
from vitnas.config.mixers import MIXERS, Mixer
from vitnas.report.text import listed

KNEE_COLOUR = "#d6365f"
PAPER_COLOUR = "#c77d00"
_SIZES = {"triangle-up": 1.45, "triangle-down": 1.45, "diamond": 1.2, "x": 1.2, "cross": 1.2}
_OTHER = Mixer("")  # for mixers of other packages, and for unreadable configurations


def colour(mixer: str) -> str:
    return MIXERS.get(mixer, _OTHER).mark[0]


def shape(mixer: str) -> tuple[str, str]:
    """Matplotlib's marker and plotly's symbol."""
    return MIXERS.get(mixer, _OTHER).mark[1:]


def mark_size(mixer: str, size: float) -> float:
    """A size for plotly at which marks of all shapes look equally large."""
    return round(size * _SIZES.get(shape(mixer)[1], 1.0), 1)


BASELINE_COLOUR = "#7a8290"
_BASELINES = (
    ("x", "x-thin-open"),
    ("+", "cross-thin-open"),
    ("1", "y-down-open"),
    ("2", "y-up-open"),
    ("3", "y-left-open"),
    ("4", "y-right-open"),
    ((8, 2, 0), "asterisk-open"),
    ("|", "line-ns-open"),
)


def baseline_shape(place: int) -> tuple[str | tuple[int, int, int], str]:
    """Matplotlib's marker and plotly's symbol of the family with this index in the run."""
    return _BASELINES[place % len(_BASELINES)]


def and_text(costs: Sequence[str]) -> str:
    """`FLOPs`, `FLOPs and latency`, `FLOPs, parameters and latency`."""
    return listed([COSTS[cost].noun for cost in costs])


_TICKS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8), tuple(n / 10 for n in range(10, 100)))


def cost_range(lowest: float, highest: float) -> tuple[float, float]:
    """Limits of a cost's axis with a margin at both ends; half a decade for a single value."""
    room = max(0.04 * log10(highest / lowest), 0.02) if highest > lowest else 0.25
    return lowest / 10**room, highest * 10**room


def top1_range(complete: Sequence[float], front: Sequence[float]) -> tuple[float, float] | None:
    """Axis limits in percent that show the front well. Poor networks may be below them.

    They reach from the front's minimum, or the 5th percentile of the complete trials if it is
    lower, to the front's best, with a margin. None without a complete trial.
    """
    if not complete or not front:
        return None
    low = min(*front, sorted(complete)[len(complete) // 20])
    room = max(0.08 * (max(front) - low), 0.5)
    return low - 2 * room, max(front) + 1.5 * room


def cost_ticks(cost: str, lowest: float, highest: float) -> tuple[list[float], list[str]]:
    """Positions and labels of the ticks of a logarithmic axis.

    They are powers of ten, or 1-2-5 below two and a half decades, or finer steps if these give
    fewer than three labels.
    """
    is_wide = log10(highest / lowest) >= 2.5
    decades = range(floor(log10(lowest)), floor(log10(highest)) + 1)
    shown: list[float] = []
    for steps in _TICKS[0 if is_wide else 1 :]:
        values = [step * 10.0**decade for decade in decades for step in steps]
        shown = [value for value in values if lowest <= value <= highest]
        if len(shown) >= 3:
            break
    if len(shown) < 2:
        shown = [lowest, (lowest * highest) ** 0.5, highest]
    return shown, [_tick_text(cost, value) for value in shown]


def _tick_text(cost: str, value: float) -> str:
    """The number without trailing zeros and without the axis's unit."""
    number, _, letter = amount(cost, value).partition(" ")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number} {letter}".rstrip() if cost in EXACT else number
