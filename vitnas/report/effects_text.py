"""What each choice buys, as text for both templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from vitnas.report.effects import AxisEffects, effects_of
from vitnas.report.matched import Matched, Paired
from vitnas.report.text import NOTHING, interval_text, percent_text, plural, signed_text
from vitnas.run import Run

View = dict[str, Any]

_NO_MODEL = (
    "The model judges no choice of this run: it needs a front of three networks, members of it "
    "that can be changed, and more trained networks to learn from."
)
_NO_MEMBER = (
    "The model has no member of the front to judge these choices on, one that was asked and can "
    "have all values."
)
_PAIRED = (
    "Of trained networks whose FLOPs differ by at most 10 %, one has one value and one another; "
    "they may differ in other answers, too. Points of a value are against the mean of the values "
    "with which it has three pairs; a value without any is left out. Of more than two values the "
    "pairs themselves choose the best and the worst, so that difference flatters."
)


def effect_views(run: Run) -> View:
    """What each axis buys: the axes whose values can be told apart, the others, those that matched
    pairs alone judge, and a sentence for each reason why some are not judged."""
    found = effects_of(run)
    axes = found.axes if found else ()
    return {
        "effects": [_effect_view(axis) for axis in axes if axis.is_told],
        "unclear_effects": [_effect_view(axis) for axis in axes if not axis.is_told],
        "paired_effects": [_paired_view(name, one) for name, one in found.paired] if found else [],
        "no_model": "" if axes else _NO_MODEL,
        "paired_hint": f"{_NO_MEMBER} {_PAIRED}" if axes else _PAIRED,
        "unjudged": _unjudged(found.unjudged) if found else [],
        "num_unjudged": len(found.unjudged) if found else 0,
        "doubling": signed_text(found.doubling) if axes and found else "",
    }


def _paired_view(name: str, paired: Paired) -> View:
    values = [(str(value), signed_text(points)) for value, points in paired.values]
    return {"name": _told(name), "values": values, "matched": _matched_text(paired.ends)}


def _unjudged(axes: Sequence[tuple[str, str]]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, why in axes:
        reasons.setdefault(why, []).append(_told(name))
    return [
        f"Not judged, because {why}: {', '.join(f'`{name}`' for name in names)}."
        for why, names in reasons.items()
    ]


def _effect_view(axis: AxisEffects) -> View:
    values = [
        (str(one.value), signed_text(one.points), interval_text(one.points, one.error))
        for one in axis.effects
    ]
    return {
        "name": _told(axis.name),
        "values": values,
        "gain": percent_text(axis.gain),
        "gain_interval": interval_text(axis.gain, axis.gain_error),
        "matched": _matched_text(axis.matched),
        "members": axis.members,
    }


def _told(address: str) -> str:
    """`stages[1].depth` -> `stage 2: depth`, counted as in all that is shown."""
    return re.sub(r"\bstages\[(\d+)\]\.", lambda found: f"stage {int(found[1]) + 1}: ", address)


def _matched_text(found: Matched | None) -> str:
    """`+0.31 (−0.10 to +0.72), 12 pairs`; a dash for too few pairs."""
    if found is None:
        return NOTHING
    low, high = map(signed_text, found.interval)
    return f"{signed_text(found.points)} ({low} to {high}), {plural(found.pairs, 'pair')}"
