"""What a person reads of trials, times and rates, the same wherever it stands."""

from __future__ import annotations

from vitnas.config.costs import COSTS, amount, cost_of
from vitnas.config.one_line import short_line
from vitnas.durations import clock
from vitnas.engine.watch.pace import Pace
from vitnas.longer import LongResult
from vitnas.records import TrialRecord
from vitnas.words import plural


def rates_text(pace: Pace, *, baselines_follow: bool = False) -> str:
    """`1.2 epochs/s, 3:05 left`; what is known of it. The time is of the trials alone, so
    `baselines_follow` adds `, then baselines`."""
    parts = []
    if pace.epochs_per_second is not None:
        parts.append(f"{pace.epochs_per_second:.2g} epochs/s")
    if pace.seconds_left is not None:
        parts.append(f"{clock(pace.seconds_left)} left{', then baselines' * baselines_follow}")
    return ", ".join(parts)


def trials_text(number: int, total: int | None) -> str:
    """`12/24 trials`; `1 trial` and `12 trials` without a total."""
    return f"{number}/{total} trials" if total else plural(number, "trial")


def replicates_text(number: int) -> str:
    """`1 replicate`, `2 replicates`."""
    return plural(number, "replicate")


def long_text(number: int, best: LongResult) -> str:
    """`2 long trainings; best 97.50 % (trial 3 at lr 0.016, 30 epochs), 96.00 % on test`."""
    test = "" if best.test_top1 is None else f", {best.test_top1:.2f} % on test"
    after = f"{best.started}, {plural(best.epochs, 'epoch')}"
    return f"{plural(number, 'long training')}; best {best.top1:.2f} % ({after}){test}"


def said(trial: TrialRecord, cost: str) -> str:
    """A trial's cost with its name where the unit does not say it: `41.2 M FLOPs`, `0.53 ms`."""
    value = cost_of(trial, cost)
    if value is None:
        return ""
    name = "" if COSTS[cost].is_told_by_unit else f" {COSTS[cost].head}"
    return f"{amount(cost, value):>7}{name}"


def network_of(trial: TrialRecord, sized: bool = False) -> str:
    """Its network in one short line, `sized` with its image size; empty where nothing was drawn."""
    return short_line(trial.network, sized) if trial.config else ""
