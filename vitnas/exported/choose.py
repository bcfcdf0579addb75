"""Choosing a network of a run: by number, by a bound on FLOPs, or the knee."""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

from vitnas.config.notation import parse_human
from vitnas.errors import VitnasError, shorten

if TYPE_CHECKING:
    from vitnas.records import TrialRecord
    from vitnas.run import Run


def choose_trial(
    run: Run, *, trial: int | None = None, under: str | None = None, knee: bool = False
) -> TrialRecord:
    """A complete trial of a run, by exactly one of `trial`, `under` and `knee`.

    Args:
        run: the run.
        trial: number of the trial, on the front or not.
        under: FLOPs like `"300k"`, `"2M"`, `"1.5G"`: the most accurate network of the front with at
            most so many.
        knee: whether to take the knee of the front.

    Raises:
        VitnasError: not exactly one of the three is given, or no trial fits; the error names one
            that does.
    """
    given = [trial is not None, under is not None, knee]
    if sum(given) != 1:
        raise VitnasError("choose a network by one of: its trial number, --under FLOPs, or --knee")
    if trial is not None:
        return _by_number(run, trial)
    if under is not None:
        return _under(run, under)
    found = run.knee
    if found is None:
        raise _empty(run)
    return found


def parse_flops(text: str) -> float:
    """`"300k"` -> 300e3, `"2M"` -> 2e6, `"1.5G"` -> 1.5e9, `"300"` -> 300.

    Raises:
        VitnasError: it is not a number, with or without a letter k, M, G or T, or not above 0.
    """
    try:
        value = parse_human(text)
    except ValueError:
        value = nan
    if not 0 < value < inf:
        raise VitnasError(f"--under {shorten(text)}: FLOPs are written like 300k, 2M or 1.5G")
    return value


def _by_number(run: Run, number: int) -> TrialRecord:
    found = next((trial for trial in run.trials if trial.number == number), None)
    complete = [trial.number for trial in run.complete]
    if found is not None and found.number in complete:
        return found
    if not complete:
        raise _empty(run)
    nearest = min(complete, key=lambda other: (abs(other - number), other))
    hint = f"(nearest complete trial: {nearest})"
    if found is None:
        raise VitnasError(f"{run.path}: there is no trial {number} {hint}")
    if found.duplicate_of is not None:
        original = found.duplicate_of
        raise VitnasError(
            f"{run.path}: trial {number} is the same network as trial {original}: use {original}"
        )
    raise VitnasError(f"{run.path}: trial {number} is {found.outcome.value}, not complete {hint}")


def _under(run: Run, text: str) -> TrialRecord:
    limit = parse_flops(text)
    members = run.front
    if not members:
        raise _empty(run)
    fitting = [trial for trial in members if trial.flops <= limit]
    if not fitting:
        cheapest = min(members, key=lambda trial: trial.flops)
        raise VitnasError(
            f"{run.path}: no network of the front has at most {text} FLOPs; the cheapest is trial "
            f"{cheapest.number} with {cheapest.flops:,}"
        )
    return max(fitting, key=lambda trial: trial.estimate or 0.0)


def _empty(run: Run) -> VitnasError:
    return VitnasError(f"{run.path}: no trial is complete yet, so there is nothing to export")
