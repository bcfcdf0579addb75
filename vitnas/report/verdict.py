"""What a report says about the baselines: a few sentences, and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitnas.records import BaselineRecord, Outcome
from vitnas.report.text import NOTHING, count_text, percent_text, plural, signed_text
from vitnas.run import Run
from vitnas.versus import Versus, versus

NONE = (
    "No baselines were trained, so this report does not say whether the front is worth its search."
)


def verdict(run: Run) -> str:
    """The comparison of the front with the baselines in a few sentences. A report begins so."""
    found = versus(run)
    if found is not None:
        return f"{_difference(found)} {_basis(found)}{_winners(found)} {_interval(found)}"
    if not run.baselines:
        return NONE
    if not any(one.outcome is Outcome.COMPLETE for one in run.baselines):
        return "No baseline was trained to the end, so the front is not compared."
    if not run.front:
        return "No trial was trained to the end, so the baselines are not compared."
    return "The front and the baselines have no FLOPs in common, so they are not compared."


def _difference(found: Versus) -> str:
    low, high = (signed_text(end) for end in found.interval)
    interval = f"95 % interval {low} to {high}"
    if not found.is_sure:
        return (
            "At equal FLOPs the front and the best baseline cannot be told apart: "
            f"{signed_text(found.points)} points, {interval}."
        )
    side = "above" if found.points > 0 else "below"
    return (
        f"At equal FLOPs the front is {percent_text(abs(found.points))} points {side} the best "
        f"baseline ({interval})."
    )


def _basis(found: Versus) -> str:
    images = f"{found.num_images:,}"
    where = (
        f"on {images} test images, which were used for no choice"
        if found.on_test
        else f"on the {images} images by which both were chosen, so the best of many is optimistic"
    )
    return (
        f"This is the mean over log FLOPs from {count_text(found.low)} to "
        f"{count_text(found.high)}, {where}. The front is ahead over {100 * found.share:.0f} % of "
        "this range."
    )


def _winners(found: Versus) -> str:
    ranges: dict[str, list[str]] = {}
    for name, low, high in found.ahead:
        ranges.setdefault(name, []).append(f"{count_text(low)} to {count_text(high)}")
    if not ranges:
        return ""
    listed = "; ".join(f"{name} from {', '.join(of)} FLOPs" for name, of in ranges.items())
    return f" Ahead of the front: {listed}."


def _interval(found: Versus) -> str:
    """What the interval is of, and what it leaves out as long as no network was trained twice."""
    if found.degrees is None:
        return (
            "The interval is of the images alone: each network was trained once, and seeds scatter "
            "further (`--replicates 3` measures it)."
        )
    fewest, most = found.trainings
    number = plural(most, "training") if fewest == most else f"{fewest} to {most} trainings"
    return f"The interval is of images and seeds: each network counts with {number}."


def baseline_rows(run: Run) -> list[Mapping[str, str]]:
    """The table of the baselines as text, sorted by family and FLOPs."""
    return [_row(one) for one in run.baselines]


def _row(one: BaselineRecord) -> Mapping[str, Any]:
    return {
        "family": one.family,
        "width": str(one.width),
        "flops": count_text(one.flops or None),
        "params": count_text(one.num_params or None),
        "top1": percent_text(one.top1) if one.top1 is not None else one.outcome.value,
        "test": percent_text(one.mean_test_top1),
        "trainings": str(len(one.trainings)) if one.top1 is not None else NOTHING,
    }
