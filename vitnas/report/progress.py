"""How the front grew with the trials, as a share of the dominated area at the end."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, log

from vitnas.pareto import front, hypervolume
from vitnas.records import Run, TrialRecord
from vitnas.report.facts import number_of


def reference_point(run: Run) -> tuple[float, float]:
    """The worst corner: top-1 of guessing in percent, and the highest FLOPs allowed or seen.

    Guessing is 0 where the number of classes is not known.
    """
    classes = number_of(run, "data", "num_classes")
    seen = max((trial.flops for trial in run.complete), default=1)
    return (100.0 / classes if classes else 0.0, float(max(seen, _limit(run) or 1)))


def _limit(run: Run) -> float | None:
    limits = run.space.get("limits")
    flops = limits.get("flops") if isinstance(limits, Mapping) else None
    found = flops.get("max") if isinstance(flops, Mapping) else None
    return float(found) if isinstance(found, (int, float)) else None


def volume_curve(run: Run) -> list[tuple[int, float]]:
    """(trial number, hypervolume so far) after each complete trial, in order of their number.

    The hypervolume is taken in top-1 points times ln FLOPs above `reference_point`, and divided
    by its last value, so that the curve ends at 1. Empty when no trial beats the reference.
    """
    worst, dearest = reference_point(run)
    corner = (-worst, log(dearest) + 1e-9)
    members: list[tuple[float, float]] = []
    volumes: list[tuple[int, float]] = []
    for trial in run.complete:
        if _usable(trial):
            members.append((-(trial.top1 or 0.0), log(trial.flops)))
            members = [members[index] for index in front(members)]
            volumes.append((trial.number, hypervolume(members, corner)))
    last = volumes[-1][1] if volumes else 0.0
    return [(number, volume / last) for number, volume in volumes] if last > 0 else []


def _usable(trial: TrialRecord) -> bool:
    return trial.top1 is not None and isfinite(trial.top1) and trial.flops > 0


def reached(curve: list[tuple[int, float]], share: float) -> int | None:
    """After how many complete trials the curve first had `share` of its last value."""
    return next((count for count, (_, value) in enumerate(curve, 1) if value >= share), None)
