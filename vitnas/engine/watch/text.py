"""What a person reads of trials, times and rates, the same wherever it stands."""

from __future__ import annotations

from vitnas.config.costs import COSTS, EXACT, amount, cost_of
from vitnas.config.one_line import one_line
from vitnas.engine.watch.pace import Pace
from vitnas.records import TrialRecord


def rates_text(pace: Pace) -> str:
    """`1.2 epochs/s, 3:05 left`; what is known of it."""
    parts = []
    if pace.epochs_per_second is not None:
        parts.append(f"{pace.epochs_per_second:.2g} epochs/s")
    if pace.seconds_left is not None:
        parts.append(f"{clock(pace.seconds_left)} left")
    return ", ".join(parts)


def replicates_text(number: int) -> str:
    """`1 replicate`, `2 replicates`."""
    return f"{number} replicate{'s' * (number != 1)}"


def said(trial: TrialRecord, cost: str) -> str:
    """A trial's cost with its name where the unit does not say it: `41.2 M FLOPs`, `0.53 ms`."""
    value = cost_of(trial, cost)
    if value is None:
        return ""
    return f"{amount(cost, value):>7}" + (f" {COSTS[cost].head}" if cost in EXACT else "")


def clock(seconds: float) -> str:
    """`75` -> `1:15`; with hours, `1:02:03`."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def span(seconds: float) -> str:
    """About how long: `20 s`, `3 min`, `5 h`, `2 days`."""
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(10, 10 * round(seconds / 10))} s"


def network_of(trial: TrialRecord) -> str:
    """Its network in one line; empty where nothing was drawn."""
    return one_line(trial.network) if trial.config else ""
