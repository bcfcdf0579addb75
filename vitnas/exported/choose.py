"""Choosing a network of a run: by number, by what it may cost, or the knee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite, nan
from typing import TYPE_CHECKING

from vitnas.config.costs import COSTS, amount, cost_of
from vitnas.config.notation import parse_human
from vitnas.errors import VitnasError, shorten

if TYPE_CHECKING:
    from vitnas.records import TrialRecord
    from vitnas.run import Run


@dataclass(frozen=True)
class Target:
    """What a network must keep to.

    Attributes:
        bounds: by cost, the worst amount that is allowed (see `vitnas.config.costs`).
        min_top1: the least top-1 in percent; None: any. Then the most accurate network is meant,
            else the one of the fewest FLOPs.
        is_robust: whether the top-1 counts that a network exceeds with a probability of 95 %, in
            place of the expected one.
    """

    bounds: Mapping[str, float] = field(default_factory=dict)
    min_top1: float | None = None
    is_robust: bool = False

    def top1(self, run: Run, trial: TrialRecord) -> float:
        """The top-1 in percent by which a trial of the run is judged."""
        if self.is_robust and run.noise is not None and trial.expected is not None:
            return run.noise.exceeded(trial.expected)
        return trial.estimate or 0.0

    def is_met(self, run: Run, trial: TrialRecord) -> bool:
        enough = self.min_top1 is None or self.top1(run, trial) >= self.min_top1
        return enough and all(_over(trial, name, most) <= 1 for name, most in self.bounds.items())

    def text(self) -> str:
        """`at most 300 k FLOPs and at least 90 % top-1`; empty where all is allowed."""
        parts = [
            f"at {'most' if COSTS[name].sign > 0 else 'least'} {exactly(name, most)}"
            for name, most in self.bounds.items()
        ]
        if self.min_top1 is not None:
            parts.append(f"at least {self.min_top1:g} % top-1")
        return " and ".join(parts)


def exactly(name: str, value: float) -> str:
    """A cost with its unit or its name, counts in full: `999,000 FLOPs`, `5.00 ms`."""
    kind = COSTS[name]
    return amount(name, value) if kind.unit else f"{value:,.0f} {kind.noun}"


def fitting(run: Run, target: Target) -> tuple[TrialRecord, ...]:
    """The complete trials that meet a target, the best first.

    Raises:
        VitnasError: no trial is complete, a cost was not measured, or none meets the target: the
            error names the one that comes closest.
    """
    known = [trial for trial in run.complete if _is_known(trial.estimate)]
    if not known:
        raise _empty(run)
    for name in target.bounds:
        if all(cost_of(trial, name) is None for trial in known):
            objective = f"{name}: {COSTS[name].direction}"
            rule = f"was not measured: the space's objectives need `{objective}`"
            raise VitnasError(f"{run.path}: {COSTS[name].noun} {rule}")
    found = [trial for trial in known if target.is_met(run, trial)]
    if not found:
        raise VitnasError(_closest(run, known, target))
    if target.min_top1 is None:
        return tuple(sorted(found, key=lambda t: (-target.top1(run, t), t.flops, t.number)))
    return tuple(sorted(found, key=lambda t: (t.flops, -target.top1(run, t), t.number)))


def _is_known(estimate: float | None) -> bool:
    return estimate is not None and isfinite(estimate)


def _over(trial: TrialRecord, name: str, most: float) -> float:
    """How often a trial's cost is the allowed one; at most 1 where it is allowed."""
    value = cost_of(trial, name)
    if value is None or not value > 0:
        return inf
    return float(value / most if COSTS[name].sign > 0 else most / value)


def _closest(run: Run, known: list[TrialRecord], target: Target) -> str:
    """The line about the trial whose worst miss is the smallest."""

    def miss(trial: TrialRecord) -> float:
        least = target.min_top1 or 0.0
        overs = [_over(trial, name, most) for name, most in target.bounds.items()]
        return max([*overs, least / max(target.top1(run, trial), 1e-9)])

    nearest = min(known, key=lambda trial: (miss(trial), trial.number))
    has = [
        exactly(name, value)
        for name in target.bounds
        if (value := cost_of(nearest, name)) is not None
    ]
    if target.min_top1 is not None:
        robust = " that it exceeds with 95 %" if target.is_robust else ""
        has.append(f"{target.top1(run, nearest):.2f} % top-1{robust}")
    return (
        f"{run.path}: no network has {target.text()}; the closest is trial {nearest.number} with "
        f"{' and '.join(has)}"
    )


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
        raise VitnasError("choose a network by one of --trial N, --under FLOPS and --knee")
    if trial is not None:
        return _by_number(run, trial)
    if under is not None:
        return fitting(run, Target({"flops": bound("--under", under)}))[0]
    found = run.knee
    if found is None:
        raise _empty(run)
    return found


def bound(option: str, text: str) -> float:
    """`"300k"` -> 300e3, `"2M"` -> 2e6, `"1.5G"` -> 1.5e9, `"300"` -> 300.

    Raises:
        VitnasError: it is not a number, with or without a letter k, M, G or T, or not above 0; the
            error names the option.
    """
    try:
        value = parse_human(text)
    except ValueError:
        value = nan
    if not 0 < value < inf:
        rule = "must be a number above 0, like 300k, 2M or 1.5G"
        raise VitnasError(f"{option} {shorten(text)}: {rule}")
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


def _empty(run: Run) -> VitnasError:
    return VitnasError(f"{run.path}: no trial is complete yet, so there is no network to choose")
