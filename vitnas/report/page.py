"""report.html and report.md: one set of values, two templates.

The page is one file that works offline. It contains plotly.js, compressed from 4.8 to 1.5 MB (2 MB
as text), and the browser unpacks it. A browser that cannot do this shows the static picture.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from vitnas import __version__
from vitnas.records import Outcome
from vitnas.report.facts import facts, session_rows
from vitnas.report.figures import (
    Figure,
    curves_figure,
    epochs_figure,
    gpu_figure,
    seconds_figure,
    volume_figure,
)
from vitnas.report.front_figure import front_figure
from vitnas.report.summary import summary_view
from vitnas.report.text import bytes_text
from vitnas.run import Run


@dataclass(frozen=True)
class Pages:
    """The text of report.md and of report.html."""

    markdown: str
    html: str


def render_pages(run: Run, picture: bytes) -> Pages:
    """Both pages from one set of values.

    Args:
        run: the run.
        picture: front.png. The page shows it until the interactive plot is ready.
    """
    view = _view(run)
    markdown = templates(_markdown_text).get_template("report.md.j2").render(**view)
    return Pages(markdown.rstrip() + "\n", _html(run, view, picture))


def _html(run: Run, view: Mapping[str, Any], picture: bytes) -> str:
    panels = {_place(run, cost): front_figure(run, cost) for cost in run.costs}
    figures = {
        **panels,
        "curves_plot": curves_figure(run),
        "volume_plot": volume_figure(run),
        "epochs_plot": epochs_figure(run, view["chance"]),
        "seconds_plot": seconds_figure(run, view["chance"]),
        "gpu_plot": gpu_figure(run, view["chance"]),
    }
    packed = packed_plotly()
    return templates().get_template("report.html.j2").render(
        **view,
        figures=figures,
        fronts=[(name, figure) for name, figure in panels.items() if figure is not None],
        figures_json=Markup(script_safe(figures)),
        picture=base64.b64encode(picture).decode("ascii"),
        css=Markup(template("report.css")),
        script=Markup(template("report.js")),
        plotly=packed,
        plotly_size=bytes_text(len(packed)),
        files=_files(run),
    )  # fmt: skip


def _place(run: Run, cost: str) -> str:
    """Id of the element for the plot of the front against a cost."""
    return "front_plot" if cost == run.costs[0] else f"front_plot_{cost}"


@cache
def packed_plotly() -> str:
    """plotly.js of the installed plotly package, gzipped, as base64."""
    content = (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode("ascii")


def script_safe(figures: Mapping[str, Figure | None]) -> str:
    """JSON that cannot close the script element around it."""
    trees = {
        name: {"data": figure.data, "layout": figure.layout}
        for name, figure in figures.items()
        if figure is not None
    }
    text = json.dumps(trees, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _view(run: Run) -> dict[str, Any]:
    """The values for both templates."""
    return {
        **summary_view(run),
        "facts": facts(run),
        "sessions": session_rows(run),
        "version": __version__,
        "written": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _files(run: Run) -> list[tuple[str, str]]:
    files = [
        ("trials.csv", "every candidate, one row each"),
        ("front.csv", "the front"),
        ("front.png", "the plot, for a paper or a slide"),
        ("report.md", "this report as text"),
    ]
    if run.baselines:
        files.append(("baselines.csv", "the baselines, one row each"))
        files.append(("comparison.json", "the front against the baselines, as numbers"))
    if run.count(Outcome.COMPLETE):
        files.append(("configs/", "a model file for each complete trial"))
    return files


@cache
def templates(finalize: Callable[[Any], Any] | None = None) -> Environment:
    """The pages' templates; HTML is escaped. `finalize` is applied to each value."""
    environment = Environment(
        loader=PackageLoader("vitnas.report"),
        autoescape=lambda name: bool(name) and ".html" in str(name),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=finalize,
    )
    environment.filters["code"] = code_span
    environment.filters["code_spans"] = code_spans
    return environment


def code_span(text: str) -> Markup:
    """Text as code in Markdown. No character in it can end the code."""
    return Markup("`" + " ".join(text.split()).replace("`", "'") + "`")


def _markdown_text(value: Any) -> Any:
    """Text for Markdown outside of code. `<` is escaped, because viewers run HTML."""
    is_plain = isinstance(value, str) and not isinstance(value, Markup)
    return value.replace("<", "&lt;") if is_plain else value


def code_spans(text: str) -> Markup:
    """Text as HTML. Parts in backticks become code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def template(name: str) -> str:
    """The text of a file beside the templates."""
    return (resources.files("vitnas.report") / "templates" / name).read_text(encoding="utf-8")
