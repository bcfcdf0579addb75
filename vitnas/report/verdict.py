"""What a report says about the baselines: a few sentences, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitnas.engine.batch.rates import pilot
from vitnas.records import BaselineRecord, Outcome
from vitnas.report.long_against import against_text
from vitnas.report.text import (
    NOTHING,
    count_text,
    is_one_place,
    listed,
    percent_text,
    plural,
    range_text,
    share_text,
    signed_text,
)
from vitnas.run import Run
from vitnas.versus import Versus, versus

_BEFORE = 2  # rates of a baseline that an older version trained at the trials' rate
_SAYS_NOTHING = "so this report does not say whether the front is worth its search."


def verdict(run: Run) -> str:
    """The comparison of the front with the baselines in a few sentences; in a second paragraph that
    after long trainings, if there are any. A report begins so."""
    return "\n\n".join(filter(None, (_of_front(run), against_text(run))))


def _of_front(run: Run) -> str:
    found = versus(run)
    if found is not None:
        text = f"{_difference(found, run)} {_basis(found, run)}{_winners(found)} {_interval(found)}"
        return text + _left(run)
    if not run.baselines:
        if run.num_baselines:
            planned = plural(run.num_baselines, "baseline")
            return f"None of {planned} has been trained yet, {_SAYS_NOTHING}"
        return f"No baselines were trained, {_SAYS_NOTHING}"
    if not any(one.outcome is Outcome.COMPLETE for one in run.baselines):
        return "No baseline was trained to the end, so the front is not compared."
    if not run.front:
        return "No trial was trained to the end, so the baselines are not compared."
    if not run.environment.data.num_val_images:
        return (
            "The run does not say on how many images top-1 was measured, so the front is not "
            "compared with the baselines."
        )
    return "The front and the baselines have no FLOPs in common, so they are not compared."


def _difference(found: Versus, run: Run) -> str:
    low, high = (signed_text(end) for end in found.interval)
    interval = f"95 % interval {low} to {high}"
    if not found.is_sure:
        return (
            f"At equal FLOPs the front and {_rivals(run)} cannot be told apart: "
            f"{signed_text(found.points)} points, {interval}."
        )
    side = "above" if found.points > 0 else "below"
    return (
        f"At equal FLOPs the front is {percent_text(abs(found.points))} points {side} "
        f"{_rivals(run)}: {interval}."
    )


def _basis(found: Versus, run: Run) -> str:
    images = f"{found.num_images:,}"
    where = (
        f"on {images} test images, which were used for no choice"
        if found.on_test
        else f"on the {images} images that score candidates, {_why_no_test(run)}, so the front "
        "counts with its expected top-1"
    )
    over = range_text(found.low, found.high)
    if is_one_place(found.low, found.high):  # one baseline, or one candidate
        return f"This is {over} FLOPs, {where}."
    return (
        f"This is the mean over log FLOPs {over}, {where}. The front is ahead over "
        f"{share_text(found.share)} of this range."
    )


def _why_no_test(run: Run) -> str:
    if run.environment.data.num_test_images:
        return "because not all networks have a test score"
    return "because there are no test images"


def _rivals(run: Run) -> str:
    """`the best of 4 baselines (vgg)`: a short search has few, and of few families."""
    trained = [one for one in run.baselines if one.outcome is Outcome.COMPLETE]
    families = listed(list(dict.fromkeys(one.family for one in trained)))
    if len(trained) == 1:
        return f"the only baseline ({families})"
    return f"the best of {len(trained)} baselines ({families})"


def _winners(found: Versus) -> str:
    ranges: dict[str, list[str]] = {}
    for name, low, high in found.ahead:
        ranges.setdefault(name, []).append(range_text(low, high))
    if not ranges:
        return ""
    told = "; ".join(f"{name} {listed(of)} FLOPs" for name, of in ranges.items())
    return f" Ahead of the front: {told}."


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


def _left(run: Run) -> str:
    """How many baselines are missing, as after Ctrl-C; empty where all have been trained."""
    left = run.num_baselines - len(run.baselines)
    if left <= 0:
        return ""
    have = "has" if left == 1 else "have"
    of = plural(run.num_baselines, "baseline")
    return f" {left} of {of} {have} not been trained yet; the best of all may be better."


def rates_text(run: Run) -> str:
    """How the baselines got their learning rates, in sentences; empty where one was tried."""
    families: dict[str, list[BaselineRecord]] = {}
    for one in run.baselines:
        families.setdefault(one.family, []).append(one)
    first = [one for family in families.values() if (one := _pilot(family)).rates]
    if not first:
        return ""
    numbers = [len(one.rates) for one in first]
    fewest, most = min(numbers), max(numbers)
    some = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    own = (
        " Those that decide the comparison, are the next best or diverged at it then tried further "
        "rates, each for itself."
        if any(len(one.rates) > _BEFORE and one not in first for one in run.baselines)
        else ""
    )
    return (
        f"Each family has its own learning rate: one of its members was trained at {some} rates, "
        f"and the best one by the scoring images was taken for all.{own} The trials share one rate."
    )


def finishing_command(run: Run) -> str:
    """The command that goes on with the baselines; empty where all their trainings have ended, or
    none has begun."""
    last = run.environment.last
    return (last.command or "vitnas search") if last.baselines_done is False else ""


def _pilot(family: Sequence[BaselineRecord]) -> BaselineRecord:
    """The member that found the family's rate; not all members are there in a run that was
    stopped."""
    middle = pilot(family)
    return middle if middle.rates else next((one for one in family if one.rates), middle)


def baseline_rows(run: Run) -> list[Mapping[str, str]]:
    """The table of the baselines as text, sorted by family and FLOPs."""
    return [_row(one) for one in run.baselines]


def _row(one: BaselineRecord) -> Mapping[str, Any]:
    return {
        "family": one.family,
        "width": str(one.width),
        "flops": count_text(one.flops or None),
        "params": count_text(one.num_params or None),
        "lr": f"{one.lr:g}" if one.lr else NOTHING,
        "top1": percent_text(one.top1) if one.top1 is not None else one.outcome.value,
        "test": percent_text(one.mean_test_top1),
        "trainings": str(len(one.trainings)) if one.top1 is not None else NOTHING,
    }
