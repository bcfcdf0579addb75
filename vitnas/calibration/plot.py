"""Cost of each proxy against its tau within bins of FLOPs, drawn."""

from __future__ import annotations

from typing import Any

from vitnas.calibration.result import Calibration, Kind, ProxyFigures
from vitnas.calibration.text import percent
from vitnas.plotting import INK, empty_figure, open_axes, png

_COLOURS: dict[Kind, str] = {
    "size": "#8b8f97",
    "score": "#b8860b",
    "first epoch": "#7a4fbf",
    "cut": "#2f8f6b",
    "training": "#d6365f",
    "likelihood": "#e08a3c",
}
_CEILING = "#3b6fd4"


def calibration_png(found: Calibration) -> bytes:
    """A PNG of 1155 x 605 pixels: for each proxy a numbered mark with its interval; the ceiling.

    A proxy without cost is at the left edge of the logarithmic axis.
    """
    figure = empty_figure(10.5, 5.5)
    axes = figure.subplots()
    _ceiling(axes, found)
    places = _places(found)
    for number, one in enumerate(found.proxies, start=1):
        _mark(axes, places[number - 1], number, one)
    _dress(axes, found, places)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)
    return png(figure)


def _places(found: Calibration) -> list[float]:
    """Positions by cost in percent.

    FLOPs and parameters, which cost nothing, are left of all others. A log-likelihood is a little
    to the right of the top-1 with the same cost.
    """
    least = min(100 * one.cost for one in found.proxies if one.cost > 0)
    free = [one.name for one in found.proxies if not one.cost]
    edge = {name: least * 0.2 * 1.5**index for index, name in enumerate(free)}
    aside = {"likelihood": 1.15}
    return [edge.get(one.name, 100 * one.cost * aside.get(one.kind, 1.0)) for one in found.proxies]


def _ceiling(axes: Any, found: Calibration) -> None:
    ceiling = found.ceiling_within
    axes.axhspan(ceiling.low, ceiling.high, color=_CEILING, alpha=0.10, linewidth=0)
    label = f"one long training: {ceiling.value:.2f}"
    axes.axhline(ceiling.value, color=_CEILING, linewidth=1.2, label=label)


def _mark(axes: Any, place: float, number: int, one: ProxyFigures) -> None:
    tau = one.within
    ends = [[max(0.0, tau.value - tau.low)], [max(0.0, tau.high - tau.value)]]
    axes.errorbar(
        place,
        tau.value,
        yerr=ends,
        fmt="o",
        markersize=13,
        color=_COLOURS[one.kind],
        ecolor=_COLOURS[one.kind],
        elinewidth=1.2,
        alpha=0.9,
        label=f"{number}  {one.name}  ({percent(one.cost)} %)",
    )
    text = {"color": "white", "fontsize": 7.5, "ha": "center", "va": "center", "zorder": 5}
    axes.text(place, tau.value, str(number), **text)


def _dress(axes: Any, found: Calibration, places: list[float]) -> None:
    title = f"{found.space.get('name')}: {len(found.networks)} networks, {found.long_epochs} epochs"
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    axes.set_xlabel("cost, % of one long training (left edge: no cost)", color=INK, fontsize=9)
    axes.set_ylabel("Kendall's tau within FLOPs bins", color=INK, fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(min(places) / 2, 200)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.tick_params(labelsize=8, colors=INK)
    open_axes(axes)
