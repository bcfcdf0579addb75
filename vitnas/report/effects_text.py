"""What each choice buys, as text for both templates."""

from __future__ import annotations

import re
from typing import Any

from vitnas.report.effects import AxisEffects, effects_of
from vitnas.report.matched import Matched
from vitnas.report.text import NOTHING, interval_text, percent_text, plural, signed_text
from vitnas.run import Run

View = dict[str, Any]


def effect_views(run: Run) -> View:
    """What each axis buys: the axes whose values can be told apart, and the others."""
    found = effects_of(run)
    axes = found.axes if found else ()
    return {
        "effects": [_effect_view(axis) for axis in axes if axis.is_told],
        "unclear_effects": [_effect_view(axis) for axis in axes if not axis.is_told],
        "doubling": signed_text(found.doubling) if found else "",
    }


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
