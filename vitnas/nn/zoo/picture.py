"""The papers' printed top-1 against the size of their networks: `vitnas zoo --plot`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from vitnas.cost.closed_form import closed_form
from vitnas.errors import ConfigError
from vitnas.files import check_replaceable, write_bytes, writing
from vitnas.nn.zoo.names import Training, printed, zoo_config
from vitnas.plotting import (
    COLOURS,
    FAINT,
    INK,
    Name,
    empty_figure,
    is_picture,
    name_points,
    open_axes,
    small_png,
    svg,
)

_DRAWN: dict[str, Callable[[Any], bytes]] = {
    ".png": lambda figure: small_png(figure, colours=256),
    ".svg": svg,
}
_USUAL = 224


class Family(NamedTuple):
    """Networks of a paper that are drawn in one shape.

    Attributes:
        paper: gives the colour.
        shape: matplotlib's marker.
        networks: name in the zoo -> what stands at its mark; empty = a small mark of an ablation.
    """

    paper: str
    shape: str
    networks: Mapping[str, str]


_PAPERS = {"SReT": COLOURS[0], "DeepViT": COLOURS[1], "BViT": COLOURS[5], "SKA": COLOURS[3]}
FAMILIES = {
    "SReT, sliced groups": Family("SReT", "o", {
        "sret_t": "T", "sret_tl": "TL", "sret_s": "S", "sret_b": "B",
        "sret_t_384": "T 384", "sret_tl_384": "TL 384",
        "sret_t_g8_8_4_4": "", "sret_t_g16_2_4_2": "", "sret_tl_g8_8_4_4": "",
        "sret_tl_g8_4_4_2": "", "sret_tl_g8_1_4_1": "", "sret_tl_g16_1_14_1": "",
        "sret_tl_g49_1_28_1": "",
    }),
    "SReT-*, no sliced groups": Family("SReT", "s", {
        "sret_star_t": "T", "sret_star_tl": "TL", "sret_star_s": "S",
        "sret_star_t_384": "T 384", "sret_star_tl_384": "TL 384", "sret_star_s_384": "S 384",
        "sret_star_s_512": "S 512",
    }),
    "ViT, DeepViT's baseline": Family("DeepViT", "X", {
        "vit_16b": "16B", "vit_24b": "24B", "vit_32b": "32B",
    }),
    "DeepViT": Family("DeepViT", "D", {
        "deepvit_16b": "16B", "deepvit_24b": "24B", "deepvit_32b": "32B",
    }),
    "DeepViT-S, DeepViT-L": Family("DeepViT", "p", {
        "deepvit_s": "S", "deepvit_l": "L", "deepvit_l_420": "L", "deepvit_l_384": "L 384",
    }),
    "BViT": Family("BViT", "h", {
        "bvit_5m": "5M", "bvit_22m": "22M", "bvit_5m_w_v": "", "bvit_5m_wo_v": "",
    }),
    "CAFormer, SKA's baseline": Family("SKA", "^", {
        "caformer_s18": "S18", "caformer_b36": "B36",
    }),
    "ConvFormer": Family("SKA", "v", {"convformer_s18": "S18"}),
    "SKAFormer": Family("SKA", "<", {"skaformer_s18": "S18", "skaformer_b36": "B36"}),
    "CSKAFormer": Family("SKA", ">", {"cskaformer_s18": "S18", "cskaformer_b36": "B36"}),
}  # fmt: skip
"""What is drawn: one network for each row that a paper prints.

Table 5 of SReT prints one row that fits `sret_star_s_512` and not `sret_s_512`, and Table 12 one
for `sret_b` and `sret_b_table12`. SKA's networks of half a training are left out."""


class Point(NamedTuple):
    """One printed top-1.

    Attributes:
        name: in the zoo.
        family: key of `FAMILIES`.
        top1: as printed, in percent.
        training: how the network was trained for it.
        flops, params: of the network, in G multiply-adds and in millions.
        printed: what the paper prints for both; None where it prints nothing.
        img_size: pixels of a side.
    """

    name: str
    family: str
    top1: float
    training: Training
    flops: float
    params: float
    printed: tuple[float | None, float | None]
    img_size: int

    @property
    def tag(self) -> str:
        return FAMILIES[self.family].networks[self.name]

    @property
    def colour(self) -> str:
        return _PAPERS[FAMILIES[self.family].paper]


@cache
def points() -> tuple[Point, ...]:
    """What is drawn, by family."""
    return tuple(_points())


def _points() -> Iterator[Point]:
    for family, (_, _, networks) in FAMILIES.items():
        for name in networks:
            entry, config = printed()[name], zoo_config(name)
            cost = closed_form(config)
            told = _number(entry.flops), _number(entry.params)
            for one in entry.top1:
                if one.training != "short":
                    yield Point(
                        name, family, float(one.percent), one.training, cost.flops / 1e9,
                        cost.num_params / 1e6, told, config.image_hw[0],
                    )  # fmt: skip


def _number(figure: str | None) -> float | None:
    return None if figure is None else float(figure)


_FILLS: dict[Training, str] = {"plain": "full", "distilled": "none", "deit": "left"}
_SIZES = {
    "flops": ("multiply-adds of one image (G)", (1, 2, 5, 10, 20, 50)),
    "params": ("parameters (M)", (5, 10, 20, 50, 100)),
}
_FAR = 1.1
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
    return {label: _look(one.shape, _PAPERS[one.paper], "full") for label, one in FAMILIES.items()}


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
