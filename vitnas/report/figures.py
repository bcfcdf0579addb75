"""The page's plots as plain trees for plotly.js: curves, hypervolume, and what all plots share.

Colours of text and grid are the page's. `front_figure` draws top-1 against a cost.

Of large runs only a part is drawn: all of the front, and at most 2,000 other points and 150 curves.
It is every k-th trial by number, and `Figure.note` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from vitnas.records import Outcome, TrialRecord
from vitnas.report.marks import colour
from vitnas.report.networks import dominant_mixer
from vitnas.report.plots import drawable, drawn_front
from vitnas.report.progress import volume_curve
from vitnas.run import Run

MOST_POINTS = 2000
MOST_CURVES = 150
_Item = TypeVar("_Item")
Tree = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """Data and layout for plotly, and a note on trials that are not drawn (empty if all are)."""

    data: list[Tree]
    layout: Tree
    note: str = ""


def thin(items: Sequence[_Item], most: int) -> list[_Item]:
    """At most `most` of the items: every k-th one, counted from the last."""
    return list(items[::-1][:: -(-len(items) // most)][::-1]) if items else []


def left_out_text(left_out: int, what: str) -> str:
    """The sentence on what is not drawn; empty if nothing is."""
    return f"{left_out:,} {what} are left out of the drawing." if left_out > 0 else ""


def short(value: float | None) -> float | None:
    """`value` with three digits, to keep the page small. Values that are not finite are gaps."""
    return round(value, 3) if value is not None and isfinite(value) else None


def curves_figure(run: Run) -> Figure | None:
    """Top-1 after each epoch; None if no trial has finished an epoch."""
    members = drawn_front(run)
    numbers = {trial.number for trial in members}
    others = [t for t in drawable(run, Outcome.COMPLETE) if t.number not in numbers]
    stopped = drawable(run, Outcome.STOPPED)
    if not members and not others and not stopped:
        return None
    half = MOST_CURVES // 2
    shown, cut = thin(others, half), thin(stopped, half)
    data = [
        _bundle(cut, "stopped early", "dot"),
        _bundle(shown, "complete, off the front", "solid"),
    ]
    data = [trace for trace in data if trace["x"]]
    data += [_curve(trial) for trial in members]
    left_out = len(others) + len(stopped) - len(shown) - len(cut)
    layout = {
        "xaxis": {"title": {"text": "epoch"}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "top-1 on the scoring split (%)"}},
        "hovermode": "closest",
    }
    return Figure(data, layout, left_out_text(left_out, "curves"))


def _bundle(trials: list[TrialRecord], name: str, dash: str) -> Tree:
    """Many curves as one trace, with a gap after each."""
    x: list[int | None] = []
    y: list[float | None] = []
    text: list[str] = []
    for trial in trials:
        x += [*range(1, trial.epochs + 1), None]
        y += [*(short(value) for value in trial.curve), None]
        text += [f"trial {trial.number}"] * (trial.epochs + 1)
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "text": text,
        "hovertemplate": "%{text}: %{y} % after epoch %{x}<extra></extra>",
        "line": {"width": 1, "color": "faint", "dash": dash},
    }  # fmt: skip


def _curve(trial: TrialRecord) -> Tree:
    epochs = list(range(1, trial.epochs + 1))
    template = f"<b>trial {trial.number}</b>: %{{y}} % after epoch %{{x}}<extra></extra>"
    return {
        "type": "scatter", "mode": "lines", "name": f"trial {trial.number}", "showlegend": False,
        "x": epochs, "y": [short(value) for value in trial.curve], "hovertemplate": template,
        "line": {"width": 2.2, "color": colour(dominant_mixer(trial))},
    }  # fmt: skip


def volume_figure(run: Run) -> Figure | None:
    """Hypervolume over trials; None with fewer than two complete trials."""
    curve = thin(volume_curve(run), MOST_POINTS)
    if len(curve) < 2:
        return None
    trace = {
        "type": "scatter", "mode": "lines", "name": "hypervolume", "showlegend": False,
        "x": [number for number, _ in curve], "y": [round(100 * share, 3) for _, share in curve],
        "hovertemplate": "%{y:.1f} % after trial %{x}<extra></extra>",
        "line": {"shape": "hv", "width": 2, "color": "ink"}, "fill": "tozeroy",
        "fillcolor": "wash",
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "trial number"}},
        "yaxis": {"title": {"text": "hypervolume (% of its last value)"}, "rangemode": "tozero"},
        "hovermode": "closest",
    }
    return Figure([trace], layout)
