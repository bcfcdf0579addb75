"""The papers' printed top-1 against the size of their networks: `vitnas zoo --plot`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from vitnas.errors import ConfigError
from vitnas.files import check_replaceable, write_bytes, writing
from vitnas.nn.zoo.accuracies import FAMILIES, PAPERS, Point, points
from vitnas.nn.zoo.names import TrainedBy
from vitnas.plotting import FAINT, INK, empty_figure, is_picture, open_axes, small_png, svg
from vitnas.point_names import Name, name_points

_DRAWN: dict[str, Callable[[Any], bytes]] = {
    ".png": lambda figure: small_png(figure, colours=256),
    ".svg": svg,
}
_USUAL = 224
_FILLS: dict[TrainedBy, str] = {"plain": "full", "distilled": "none", "deit": "left"}
_SIZES = {
    "flops": ("multiply-adds of one image (G)", (1, 2, 5, 10, 20, 50)),
    "params": ("parameters (M)", (5, 10, 20, 50, 100)),
}
_FAR = 1.1
"""Beyond this ratio of printed and built size a line leads to the printed one."""
_NAMED, _SMALL, _LARGE = 6.5, 3.2, 12.0
"""Widths of marks, in points; the last is the ring's."""
_RING = {"ms": _LARGE, "mfc": "none"}
_DOTS = {"ls": ":", "lw": 0.9}
_NOTE = (
    "Parameters and multiply-adds are those of the networks as vitnas builds them, counted by "
    "closed form: some sizes that the papers print are impossible."
)


def accuracy_figure() -> Any:
    """Two panels: printed top-1 against multiply-adds and against parameters, both logarithmic."""
    figure = empty_figure(12.0, 7.0, dpi=130)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.06)
    figure.supxlabel(_NOTE, x=0.01, ha="left", fontsize=8, color=FAINT)
    panels = dict(zip(_SIZES, figure.subplots(1, 2, sharey=True), strict=True))
    lines = {size: _panel(axes, size) for size, axes in panels.items()}
    panels["flops"].set_ylabel("top-1 on ImageNet-1k, as printed (%)", color=INK)
    _legend(panels["flops"], _families(), columns=2)
    _legend(panels["params"], _kinds(), columns=1)
    figure.draw_without_rendering()  # the axes get their final place
    figure.set_layout_engine("none")
    for size, axes in panels.items():
        name_points(axes, _names(size), lines[size], 7.5)
    return figure


def _panel(axes: Any, size: str) -> list[list[tuple[float, float]]]:
    """Draw all but names; the corners of the lines."""
    _dress(axes, size)
    lines = [*_whiskers(axes, size), *_lines(axes, size)]
    for point in points():
        _mark(axes, getattr(point, size), point)
    return lines


def _dress(axes: Any, size: str) -> None:
    label, ticks = _SIZES[size]
    axes.set_xscale("log")
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    values = [getattr(point, size) for point in points()]
    axes.set_xlim(min(values) / 1.25, max(values) * 1.3)
    axes.set_ylim(73.6, 86.4)
    axes.set_xlabel(f"{label}, logarithmic", color=INK)
    axes.tick_params(labelsize=9, colors=INK)
    open_axes(axes)


def _lines(axes: Any, size: str) -> Iterator[list[tuple[float, float]]]:
    """Lines through the networks of a family that were trained alike on images of one size."""

    def kind(point: Point) -> tuple[str, str, bool]:
        return point.family, point.training, point.img_size == _USUAL

    for _, group in groupby(sorted((p for p in points() if p.tag), key=kind), kind):
        alike = list(group)
        ends = sorted((getattr(point, size), point.top1) for point in alike)
        style = "-" if alike[0].training == "plain" else (0, (4, 2))
        axes.plot(*zip(*ends, strict=True), color=alike[0].colour, lw=0.9, ls=style, alpha=0.55)
        yield ends


def _whiskers(axes: Any, size: str) -> Iterator[list[tuple[float, float]]]:
    """From a network's size to the printed one, if they are far apart."""
    for point in points():
        built, told = getattr(point, size), point.printed[list(_SIZES).index(size)]
        if told is not None and not 1 / _FAR < told / built < _FAR:
            axes.plot([built, told], [point.top1] * 2, color=point.colour, **_DOTS, zorder=1.8)
            axes.plot(told, point.top1, color=point.colour, marker="|", ms=8, mew=1.0, zorder=1.8)
            yield [(built, point.top1), (told, point.top1)]


def _mark(axes: Any, x: float, point: Point) -> None:
    look = _look(FAMILIES[point.family].shape, point.colour, _FILLS[point.training])
    axes.plot(x, point.top1, **look | {"ms": _NAMED if point.tag else _SMALL})
    if point.img_size != _USUAL:
        axes.plot(x, point.top1, **_look("o", point.colour, "none") | _RING)


def _look(shape: str, colour: str, fill: str) -> dict[str, Any]:
    """Of a mark: full, hollow (`none`) or half (`left`)."""
    is_full = fill == "full"
    return {
        "marker": shape, "fillstyle": "left" if fill == "left" else "full", "ls": "none",
        "mfc": "white" if fill == "none" else colour, "mfcalt": "white", "ms": _NAMED,
        "mec": "white" if is_full else colour, "mew": 0.4 if is_full else 1.0, "zorder": 3,
    }  # fmt: skip


def _names(size: str) -> list[Name]:
    def width(point: Point) -> float:
        return _SMALL if not point.tag else _NAMED if point.img_size == _USUAL else _LARGE

    return [Name(p.tag, getattr(p, size), p.top1, p.colour, width(p)) for p in points()]


def _families() -> dict[str, dict[str, Any]]:
    """Legend: the shape and the colour of each family."""
    return {label: _look(one.shape, PAPERS[one.paper], "full") for label, one in FAMILIES.items()}


def _kinds() -> dict[str, dict[str, Any]]:
    """Legend: what fills, rings, small marks and dotted lines mean."""
    return {
        "trained by the labels": _look("o", FAINT, "full"),
        "distilled": _look("o", FAINT, "none"),
        "by the labels, with DeiT's recipe": _look("o", FAINT, "left"),
        "fine-tuned on images of 384 or 512 px (others: 224 px)": _look("o", FAINT, "none") | _RING,
        "ablation: other groups (SReT), without V or QK (BViT)": _look("o", FAINT, "full")
        | {"ms": _SMALL},
        "to the size that the paper prints, if over 10 % away": {
            "color": FAINT, "marker": "|", "ms": 8, **_DOTS,
        },
    }  # fmt: skip


def _legend(axes: Any, looks: Mapping[str, dict[str, Any]], columns: int) -> None:
    from matplotlib.lines import Line2D

    axes.legend(
        [Line2D([], [], **look) for look in looks.values()], list(looks), ncols=columns,
        loc="lower right", fontsize=8, labelcolor=INK, frameon=False, columnspacing=1.2,
    )  # fmt: skip


def write_accuracy_figure(file: Path) -> None:
    """Write the figure as the PNG or SVG that the file's ending says.

    Raises:
        ConfigError: it has another ending.
        RunError: the file is somebody else's, or cannot be written.
    """
    draw = _DRAWN.get(file.suffix.lower())
    if draw is None:
        rule = f"must end in {' or '.join(_DRAWN)}"
        nearest = file.parent / f"{file.stem.strip('.') or 'zoo'}.png"
        raise ConfigError(rule, address="--plot", value=str(file), nearest=nearest)
    check_replaceable(file, is_picture)
    content = draw(accuracy_figure())
    with writing(file):
        write_bytes(file, content)
