"""What a report says of the baselines: one sentence, and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vitnas.records import BaselineRecord, Outcome, Run
from vitnas.report.text import count_text, percent_text, signed_text
from vitnas.report.versus import Versus, versus

NONE = (
    "No baselines were trained, so this report does not say whether the front is worth its search."
)


def verdict(run: Run) -> str:
    """The front against the baselines in a few sentences; the first words of a report."""
    found = versus(run)
    if found is not None:
        return f"{_difference(found)} {_basis(found)}{_winners(found)}"
    if not run.baselines:
        return NONE
    if not any(one.outcome is Outcome.COMPLETE for one in run.baselines):
        return "No baseline was trained to its end, so the front is compared with none."
    if not run.front:
        return "No trial was trained to the end, so there is nothing to compare the baselines with."
    return "The front and the baselines have no FLOPs in common, so they are not compared."


def _difference(found: Versus) -> str:
    low, high = (signed_text(end) for end in found.interval)
    interval = f"95 % interval {low} to {high}"
    if not found.is_sure:
        return (
            "At like FLOPs the front and the best baseline cannot be told apart: "
            f"{signed_text(found.points)} points, {interval}."
        )
    side = "above" if found.points > 0 else "below"
    return (
        f"At like FLOPs the front is {percent_text(abs(found.points))} points {side} the best "
        f"baseline ({interval})."
    )


def _basis(found: Versus) -> str:
    images = f"{found.num_images:,}"
    where = (
        f"on {images} test images, which nothing was chosen by"
        if found.on_test
        else f"on the {images} images that both were chosen by, which flatters the best of many"
    )
    return (
        f"This is the mean over {count_text(found.low)} to {count_text(found.high)} FLOPs by log, "
        f"{where}; the front is ahead over {100 * found.share:.0f} % of that range."
    )


def _winners(found: Versus) -> str:
    ranges: dict[str, list[str]] = {}
    for name, low, high in found.ahead:
        ranges.setdefault(name, []).append(f"{count_text(low)} to {count_text(high)}")
    if not ranges:
        return ""
    listed = "; ".join(f"{name} from {', '.join(of)} FLOPs" for name, of in ranges.items())
    return f" Ahead of the front: {listed}."


def baseline_rows(run: Run) -> list[Mapping[str, str]]:
    """The table of the baselines as text, by family and FLOPs."""
    return [_row(one) for one in run.baselines]


def _row(one: BaselineRecord) -> Mapping[str, Any]:
    return {
        "family": one.family,
        "width": str(one.width),
        "flops": count_text(one.flops or None),
        "params": count_text(one.num_params or None),
        "top1": percent_text(one.top1) if one.top1 is not None else one.outcome.value,
        "test": percent_text(one.test_top1),
    }
