"""Numbers as text: units and digits, and a dash for unknown values."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vitnas.config.costs import COSTS, amount
from vitnas.config.notation import human
from vitnas.words import plural as plural

NOTHING = "–"
NORMAL = 1.96
"""Standard errors to each side of a 95 % interval."""


def count_text(value: float | None) -> str:
    """A count in three digits: `41_200_000` -> `41.2 M`; a dash for None."""
    return NOTHING if value is None or not math.isfinite(value) else human(value)


def cost_text(name: str, value: float | None) -> str:
    """A cost with its unit: `41.2 M`, `0.530 ms`; a dash for None and NaN."""
    return NOTHING if value is None or not math.isfinite(value) else amount(name, value)


def named_cost_text(name: str, value: float | None) -> str:
    """A cost, with its name if the unit does not show it: `41.2 M FLOPs`, `0.530 ms`."""
    kind = COSTS[name]
    return cost_text(name, value) + ("" if kind.is_told_by_unit else f" {kind.noun}")


def share_text(share: float) -> str:
    """A share in whole percent: `0.5` -> `50 %`; `0 %` and `100 %` are none and all of it."""
    whole = round(100 * share)
    if whole == 100 and share < 1:
        return "more than 99 %"
    if whole == 0 and share > 0:
        return "less than 1 %"
    return f"{whole} %"


def range_text(low: float, high: float) -> str:
    """A range of counts: `from 10.0 k to 1.00 M`, `at 10.0 k` where both ends are one."""
    if is_one_place(low, high):
        return f"at {count_text(low)}"
    return f"from {count_text(low)} to {count_text(high)}"


def is_one_place(low: float, high: float) -> bool:
    """Whether the ends of a range read the same, as those of a front of one network."""
    return count_text(low) == count_text(high)


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def percent_text(value: float | None, digits: int = 2) -> str:
    """A number in percent: `81.234` -> `81.23`; a dash for None and NaN."""
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def signed_text(value: float | None, digits: int = 2) -> str:
    """A difference with its sign and a true minus: `-0.2` -> `−0.20`; a dash for None and NaN."""
    if value is None or not math.isfinite(value):
        return NOTHING
    rounded = round(value, digits) + 0.0  # -0.0 becomes 0.0
    return f"{rounded:+.{digits}f}".replace("-", "−")


def interval_text(value: float, error: float) -> str:
    """The 95 % interval of a normal value with this standard error: `−0.20 to +0.60`."""
    return f"{signed_text(value - NORMAL * error)} to {signed_text(value + NORMAL * error)}"


def duration_text(seconds: float | None) -> str:
    """`4210` seconds -> `1 h 10 min`; at most two units."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def bytes_text(size: int) -> str:
    """A file size: `2_040_000` -> `2.0 MB`."""
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"
