"""What a comparison of runs says, as sentences, as rows, and as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from vitnas.columns import columns
from vitnas.report.compared import Compared, Gap, Side
from vitnas.report.text import (
    NOTHING,
    count_text,
    duration_text,
    is_one_place,
    listed,
    percent_text,
    plural,
    range_text,
    share_text,
    signed_text,
)

HEADS = (
    "run", "front", "best expected %", "hypervolume %", "trials", "epochs", "time", "sampler",
    "seed",
)  # fmt: skip


def gap_sentences(found: Compared) -> list[str]:
    """A paragraph for every two runs, or a sentence that says why there is none."""
    sentences = [_with_range(gap, found.sides) for gap in found.gaps]
    known = {(gap.one, gap.other) for gap in found.gaps}
    names = [side.name for side in found.sides if side.run.front]
    sentences += [
        f"The fronts of {one} and {other} have no FLOPs in common, so they are not compared."
        for one, other in combinations(names, 2)
        if (one, other) not in known
    ]
    empty = [side.name for side in found.sides if not side.run.front]
    if empty:
        have = "has" if len(empty) == 1 else "have"
        sentences.append(f"{listed(empty)} {have} no network that was trained to the end.")
    return sentences


def _with_range(gap: Gap, sides: Sequence[Side]) -> str:
    """The difference, and what one front has alone; this first where they share one place only."""
    flops = {side.name: [trial.flops for trial in side.run.front] for side in sides}
    alone = [
        f"Only {name} has networks {text}."
        for name in (gap.one, gap.other)
        if (text := _beyond(flops[name], gap))
    ]
    parts = [_gap(gap), *alone]
    return " ".join(parts[1:] + parts[:1] if is_one_place(gap.low, gap.high) else parts)


def _beyond(flops: Sequence[int], gap: Gap) -> str:
    """The networks of a front outside of the range that both fronts cover."""
    parts = []
    if not is_one_place(min(flops), gap.low) and min(flops) < gap.low:
        parts.append(f"below {count_text(gap.low)} FLOPs (from {count_text(min(flops))} on)")
    if not is_one_place(max(flops), gap.high) and max(flops) > gap.high:
        parts.append(f"above {count_text(gap.high)} FLOPs (up to {count_text(max(flops))})")
    return " and ".join(parts)


def _gap(gap: Gap) -> str:
    where = range_text(gap.low, gap.high)
    if gap.interval is None:
        interval = "without an interval, because a run does not say how many images score"
    else:
        interval = f"95 % interval {_interval(gap.interval)}"
    points = f"{percent_text(abs(gap.points))} points of expected top-1"
    side = "above" if gap.points >= 0 else "below"
    if gap.interval is not None and gap.interval[0] <= 0 <= gap.interval[1]:
        text = (
            f"At equal FLOPs the fronts of {gap.one} and {gap.other} cannot be told apart: "
            f"{signed_text(gap.points)} points of expected top-1 for {gap.one} ({interval})."
        )
    else:
        text = (
            f"At equal FLOPs the front of {gap.one} is {points} {side} that of {gap.other} "
            f"({interval})."
        )
    if is_one_place(gap.low, gap.high):  # a front of one network
        text += f" This is {where} FLOPs."
    else:
        text += (
            f" This is the mean over log FLOPs {where}; {gap.one} is ahead over "
            f"{share_text(gap.ahead)} of this range."
        )
    if gap.test is not None:
        test, *ends = gap.test
        text += (
            f" On the test images the same difference is {signed_text(test)} points "
            f"({_interval(ends)})."
        )
    return text


def _interval(ends: Sequence[float]) -> str:
    return f"{signed_text(ends[0])} to {signed_text(ends[1])}"


def budget_sentence(found: Compared) -> str:
    """The hypervolume of all runs after as many epochs as the shortest has; empty without any."""
    curves = [side.curve for side in found.sides]
    if not all(curves):
        return ""
    epochs = min(curve[-1].epochs for curve in curves)
    best = max(curve[-1].volume for curve in curves)
    if epochs <= 0 or best <= 0:
        return ""
    reached = [
        max((one.volume for one in curve if one.epochs <= epochs), default=0.0) for curve in curves
    ]
    listed = ", ".join(
        f"{side.name} {100 * volume / best:.1f} %"
        for side, volume in zip(found.sides, reached, strict=True)
    )
    return (
        f"After {plural(epochs, 'epoch')} each, as many as the shortest run has: {listed} of the "
        "largest final hypervolume."
    )


def side_rows(found: Compared) -> list[tuple[str, ...]]:
    """A row for each run, under `HEADS`."""
    return [_row(side) for side in found.sides]


def _row(side: Side) -> tuple[str, ...]:
    run, curve = side.run, side.curve
    last = curve[-1] if curve else None
    best = max((trial.estimate or 0.0 for trial in run.front), default=None)
    return (
        side.name,
        str(len(run.front)),
        percent_text(best),
        NOTHING if side.share is None else percent_text(100 * side.share, 1),
        str(sum(trial.is_ended_here for trial in run.trials)),
        f"{last.epochs:,}" if last else "0",
        duration_text(last.seconds if last else None),
        run.environment.last.sampler or NOTHING,
        NOTHING if run.environment.seed is None else str(run.environment.seed),
    )


def differing_rows(found: Compared) -> list[tuple[str, ...]]:
    """A row for each fact in which the runs differ: its name, and its value in each run."""
    differing: Mapping[str, tuple[str, ...]] = found.differing
    return [(name, *values) for name, values in differing.items()]


def compared_text(found: Compared) -> str:
    """The comparison for a terminal."""
    names = tuple(side.name for side in found.sides)
    lines = columns([HEADS, *side_rows(found)], left=[0, -2])
    lines += ["", *gap_sentences(found)]
    lines += [line for line in [budget_sentence(found)] if line]
    lines += [f"note: {note}" for note in found.notes]
    rows = differing_rows(found)
    if rows:
        heads = ("what differs", *names)
        lines += ["", *columns([heads, *rows], left=range(len(heads)))]
    return "\n".join(lines)
