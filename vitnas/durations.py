"""How long something takes, for people."""

from __future__ import annotations


def clock(seconds: float) -> str:
    """`75` -> `1:15`; with hours, `1:02:03`."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def in_turns(number: int, seconds: float, workers: int) -> float:
    """Seconds until so many workers have done `number` things of `seconds` each; one or more."""
    return number * seconds / min(number, workers)


def span(seconds: float) -> str:
    """About how long: `20 s`, `3 min`, `5 h`, `2 days`."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(10, 10 * round(seconds / 10))} s"
