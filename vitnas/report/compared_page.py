"""The page on several runs: fronts over one another, hypervolume over what was spent, tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from math import log10
from pathlib import Path

from markupsafe import Markup

from vitnas import __version__
from vitnas.config.costs import COSTS
from vitnas.files import write_text, writing
from vitnas.report.compared import Compared, Side
from vitnas.report.compared_text import (
    HEADS,
    budget_sentence,
    differing_rows,
    gap_sentences,
    side_rows,
)
from vitnas.report.figures import MOST_POINTS, Figure, Tree, short, thin, time_unit
from vitnas.report.marks import cost_range, cost_ticks
from vitnas.report.networks import network_line
from vitnas.report.page import packed_plotly, script_safe, template, templates
from vitnas.report.plots import drawn_front, step_line
from vitnas.report.spent import Spent
from vitnas.report.standing import expected_text
from vitnas.report.text import bytes_text, cost_text

FILE_NAME = "compared.html"
_LOOKS = (
    ("#3b78d8", "circle", "solid"),
    ("#d9711c", "square", "dash"),
    ("#0f9d74", "diamond", "dot"),
    ("#b04fb0", "triangle-up", "dashdot"),
    ("#a8870c", "cross", "longdash"),
    ("#6c727d", "x", "longdashdot"),
)


def compared_html(found: Compared) -> str:
    """The page; it works offline, as a report does."""
    first = found.sides[0].run
    fronts = {f"front_{cost}": fronts_figure(found, cost) for cost in first.costs}
    epochs = _spent_figure(found, "epochs trained", lambda one: float(one.epochs))
    time = _hours_figure(found, lambda one: one.seconds, "", " in trainings")
    on_gpu = _hours_figure(found, lambda one: one.gpu_seconds, "GPU-", "")
    figures = {**fronts, "epochs_plot": epochs, "seconds_plot": time, "gpu_plot": on_gpu}
    packed = packed_plotly()
    return templates().get_template("compared.html.j2").render(
        names=[side.name for side in found.sides],
        heads=HEADS,
        rows=side_rows(found),
        gaps=gap_sentences(found),
        budget=budget_sentence(found),
        notes=found.notes,
        differing=differing_rows(found),
        figures=figures,
        fronts=[(name, figure) for name, figure in fronts.items() if figure is not None],
        figures_json=Markup(script_safe(figures)),
        css=Markup(template("report.css")),
        script=Markup(template("report.js")),
        plotly=packed,
        plotly_size=bytes_text(len(packed)),
        version=__version__,
        written=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    )  # fmt: skip


def is_compared(head: bytes) -> bool:
    """Whether `head` is the beginning of a page that `write_compared` wrote."""
    return b'content="vitnas ' in head and b" compared " in head


def write_compared(found: Compared, file: Path) -> None:
    """Write the page.

    Raises:
        RunError: the file cannot be written.
    """
    text = compared_html(found)
    with writing(file):
        write_text(file, text)


def fronts_figure(found: Compared, cost: str) -> Figure | None:
    """The fronts of all runs against a cost; None if none can be drawn."""
    values = [
        value
        for side in found.sides
        for trial in drawn_front(side.run)
        for value in trial.costs([cost])
    ]
    if not values:
        return None
    low, high = cost_range(min(values), max(values))
    end = high if COSTS[cost].sign > 0 else low
    data = [
        trace for place, side in enumerate(found.sides) for trace in _front(side, place, cost, end)
    ]
    positions, labels = cost_ticks(cost, low, high)
    x: Tree = {"type": "log", "range": [log10(low), log10(high)], "tickvals": positions}
    x |= {"ticktext": labels, "title": {"text": COSTS[cost].axis}}
    y: Tree = {"title": {"text": f"expected {found.sides[0].run.quality} on the scoring split (%)"}}
    return Figure(data, {"xaxis": x, "yaxis": y, "hovermode": "closest"})


def _front(side: Side, place: int, cost: str, end: float) -> list[Tree]:
    """A run's step line, and its members as marks of the same colour."""
    x, y = step_line(side.run, cost)
    if not x:
        return []
    colour, symbol, dash = _LOOKS[place % len(_LOOKS)]
    members = drawn_front(side.run)
    name = side.name.replace("<", "&lt;")
    text = [
        f"<b>{name}, trial {t.number}</b><br>{expected_text(t)} % expected, "
        f"{cost_text(cost, t.costs([cost])[0])}<br>{network_line(t).replace('<', '&lt;')}"
        for t in members
    ]
    line = {
        "type": "scatter", "mode": "lines", "name": name, "legendgroup": name, "hoverinfo": "skip",
        "x": [*x, end], "y": [*map(short, y), short(y[-1])], "showlegend": False,
        "line": {"shape": "hv", "width": 2, "color": colour, "dash": dash},
    }  # fmt: skip
    marks = {
        "type": "scatter", "mode": "markers", "name": name, "legendgroup": name,
        "x": [t.costs([cost])[0] for t in members], "y": [short(t.estimate) for t in members],
        "text": text, "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": colour, "symbol": symbol, "size": 9},
    }  # fmt: skip
    return [line, marks]


def _hours_figure(
    found: Compared, of: Callable[[Spent], float | None], before: str, after: str
) -> Figure | None:
    """Over seconds, drawn in the unit that suits the longest run."""
    ends = [of(side.curve[-1]) or 0.0 for side in found.sides if side.curve]
    unit, length = time_unit(max(ends, default=0.0))

    def told(one: Spent) -> float | None:
        seconds = of(one)
        return None if seconds is None else seconds / length

    return _spent_figure(found, f"{before}{unit}{after}", told)


def _spent_figure(found: Compared, axis: str, of: Callable[[Spent], float | None]) -> Figure | None:
    """Hypervolume of all runs over one kind of cost; a run whose cost is not known or nothing is
    left out."""
    best = max((side.curve[-1].volume for side in found.sides if side.curve), default=0.0)
    data: list[Tree] = []
    for place, side in enumerate(found.sides):
        curve = thin(side.curve, MOST_POINTS)
        x = [of(one) for one in curve]
        if not curve or None in x or not x[-1] or best <= 0:
            continue
        colour, _, dash = _LOOKS[place % len(_LOOKS)]
        name = side.name.replace("<", "&lt;")
        line: Tree = {
            "type": "scatter", "mode": "lines", "name": name,
            "x": [short(value) for value in x],
            "y": [short(100 * one.volume / best) for one in curve],
            "hovertemplate": f"{name}: %{{y:.1f}} % after %{{x}} {axis}<extra></extra>",
            "line": {"shape": "hv", "width": 2, "color": colour, "dash": dash},
        }  # fmt: skip
        data.append(line)
    if not data:
        return None
    layout: Tree = {
        "xaxis": {"title": {"text": axis}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": "hypervolume (% of the largest)"}, "rangemode": "tozero"},
        "hovermode": "closest",
    }
    return Figure(data, layout)
