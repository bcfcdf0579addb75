"""The page's plots as plain trees for plotly.js: curves, hypervolume, and what all plots share.

Colours of text and grid are the page's. `front_figure` draws top-1 against a cost.

Of large runs only a part is drawn: all of the front, and at most 2,000 other points and 150 curves.
It is every k-th trial by number, and `Figure.note` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

from vitnas.records import Outcome, TrialRecord
from vitnas.report.chance import Chance
from vitnas.report.marks import colour
from vitnas.report.networks import widest_mixer
from vitnas.report.plots import drawable, drawn_front
from vitnas.report.progress import volume_curve
from vitnas.report.spent import Spent, per_network, random_share, spent_curve
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


def time_unit(seconds: float) -> tuple[str, int]:
    """The unit of an axis that ends there, and its seconds: hours from two hours on."""
    return ("minutes", 60) if seconds < 2 * 3600 else ("hours", 3600)


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
        "line": {"width": 2.2, "color": colour(widest_mixer(trial))},
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


def epochs_figure(run: Run, chance: Chance | None) -> Figure | None:
    """Hypervolume over the epochs that were trained, beside a random search's; None with fewer than
    two trials."""
    curve = spent_curve(run)
    figure = _spent_figure(run, curve, "epochs trained", [float(one.epochs) for one in curve])
    return _beside_chance(figure, chance, float(run.epochs), "epochs")


def seconds_figure(run: Run, chance: Chance | None) -> Figure | None:
    """The same over the time of the trainings; None where a time is not known, too."""
    return _hours_figure(run, chance, lambda one: one.seconds, "", " in trainings")


def gpu_figure(run: Run, chance: Chance | None) -> Figure | None:
    """The same over GPU-hours; None where no GPU was used, too."""
    return _hours_figure(run, chance, lambda one: one.gpu_seconds, "GPU-", "")


def _hours_figure(
    run: Run,
    chance: Chance | None,
    of: Callable[[Spent], float | None],
    before: str,
    after: str,
) -> Figure | None:
    """Over seconds, drawn in the unit of `time_unit`; a random search is an estimate."""
    curve = spent_curve(run)
    known = [value for one in curve if (value := of(one)) is not None]
    if len(known) < len(curve) or not known or known[-1] <= 0:
        return None
    unit, length = time_unit(known[-1])
    axis = f"{before}{unit}{after}"
    figure = _spent_figure(run, curve, axis, [value / length for value in known])
    network = per_network(run)
    each = ((network and of(network)) or 0.0) / length
    estimate = (
        f" Each of their networks counts {each:.3g} {before}{unit}, the mean of those that this "
        "run trained to the end: an estimate, because random networks may be larger or smaller."
    )
    return _beside_chance(figure, chance, each, axis, estimate)


def _beside_chance(
    figure: Figure | None, chance: Chance | None, each: float, axis: str, more: str = ""
) -> Figure | None:
    """The figure with random searches in it, of which each network takes so much of the axis."""
    if figure is None or chance is None or each <= 0:
        return figure
    note = f"The dashed line is the median of random searches; the band holds 90 % of them.{more}"
    return Figure([*_chance_traces(chance, each, axis), *figure.data], figure.layout, note)


def _chance_traces(chance: Chance, each: float, axis: str) -> list[Tree]:
    """A band of random searches, and the line of their medians."""
    x = [short(number * each) for number in chance.networks]
    low, median, high = (
        [short(100 * share) for share in line] for line in (chance.low, chance.median, chance.high)
    )
    band = {
        "type": "scatter", "mode": "lines", "showlegend": False, "hoverinfo": "skip",
        "x": [*x, *x[::-1]], "y": [*high, *low[::-1]],
        "fill": "toself", "fillcolor": "wash", "line": {"width": 0},
    }  # fmt: skip
    line = {
        "type": "scatter", "mode": "lines", "name": "random search, by the model",
        "x": x, "y": median, "line": {"width": 1.5, "color": "soft", "dash": "dash"},
        "text": [
            f"{number} random networks, {a:.0f} to {b:.0f} %"
            for number, a, b in zip(chance.networks, low, high, strict=True)
        ],
        "hovertemplate": f"%{{y:.0f}} % after %{{x}} {axis}: %{{text}}<extra></extra>",
    }  # fmt: skip
    return [band, line]


def _spent_figure(run: Run, curve: Sequence[Spent], axis: str, x: Sequence[float]) -> Figure | None:
    if len(curve) < 2 or curve[-1].volume <= 0:
        return None
    points = thin(list(zip(x, curve, strict=True)), MOST_POINTS)
    trace = {
        "type": "scatter", "mode": "lines", "name": "the search", "showlegend": False,
        "x": [short(value) for value, _ in points],
        "y": [short(100 * one.volume / curve[-1].volume) for _, one in points],
        "text": [f"trial {one.number}" for _, one in points],
        "hovertemplate": f"%{{y:.1f}} % after %{{x}} {axis}, %{{text}}<extra></extra>",
        "line": {"shape": "hv", "width": 2, "color": "ink"},
    }  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": axis}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "hypervolume (% of its last value)"}, "rangemode": "tozero"},
        "hovermode": "closest",
    }
    return Figure([trace, *_at_random(run, curve, x)], layout)


def _at_random(run: Run, curve: Sequence[Spent], x: Sequence[float]) -> list[Tree]:
    """A line at what the trials that were drawn at random reached, if they were enough."""
    share = random_share(run, curve)
    if share is None:
        return []
    number, reached = share
    line = {
        "type": "scatter", "mode": "lines", "name": f"reached by {number} random trials",
        "x": [0.0, short(x[-1])], "y": [short(100 * reached)] * 2, "hoverinfo": "skip",
        "line": {"width": 1.5, "color": "soft", "dash": "dot"},
    }  # fmt: skip
    return [line]
