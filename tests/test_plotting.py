"""The look that all plots share."""

from __future__ import annotations

import io
from itertools import combinations
from typing import Any

from PIL import Image

from vitnas.plotting import (
    Name,
    empty_figure,
    is_picture,
    name_points,
    open_axes,
    png,
    small_png,
    svg,
)


def test_a_figure_is_a_png_of_its_size_and_names_its_maker() -> None:
    figure = empty_figure(3.0, 2.0, dpi=50)
    axes = figure.subplots()
    open_axes(axes)
    assert not axes.spines["top"].get_visible()
    assert axes.spines["left"].get_visible()
    sizes = []
    for optimize in (False, True):
        drawn = png(figure, optimize)
        picture = Image.open(io.BytesIO(drawn))
        assert (picture.format, picture.size) == ("PNG", (150, 100))
        assert picture.info["Software"] == "vitnas"
        sizes.append(len(drawn))
    assert sizes[1] <= sizes[0]


def test_pictures_of_ours_are_known_by_their_first_bytes() -> None:
    figure, same = empty_figure(1.0, 1.0, dpi=50), empty_figure(1.0, 1.0, dpi=50)
    assert svg(figure) == svg(same)
    assert all(is_picture(draw(figure)[:4096]) for draw in (png, small_png, svg))
    plain = io.BytesIO()
    Image.new("RGB", (4, 4)).save(plain, "png")
    assert not any(map(is_picture, (plain.getvalue(), b"Software\0vitnas", b"<?xml ?><svg/>", b"")))


def named(names: list[Name], lines: list[list[tuple[float, float]]]) -> Any:
    """Axes from 0 to 10 with these names."""
    figure = empty_figure(3.0, 3.0, dpi=72)
    axes = figure.subplots()
    axes.set(xlim=(0, 10), ylim=(0, 10))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    name_points(axes, names, lines, 8.0)
    return axes


def test_names_lie_apart_from_each_other_from_marks_and_from_lines() -> None:
    """Also those of marks that are nearer to each other than a name is wide, and at the edge."""
    at = [(5.0, 5.0), (5.4, 5.0), (5.2, 5.5), (9.8, 9.9), (0.1, 0.1)]
    marks = [Name(f"name {place}", *spot, "black", 6.0) for place, spot in enumerate(at)]
    axes = named([*marks, Name("", 6.0, 5.0, "black", 6.0)], [[(0.0, 5.0), (10.0, 5.0)]])
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == len(marks), "a mark without a name has none"
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    spots = axes.transData.transform([*at, (6.0, 5.0)])
    assert not any(box.contains(*spot) for box in boxes for spot in spots)
    line = axes.transData.transform((0, 5))[1]
    assert not any(box.y0 < line < box.y1 for box in boxes)
    assert all(axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 for box in boxes)


def test_marks_at_one_place_share_a_name_and_a_far_name_has_a_line() -> None:
    axes = named([Name("a", 5.0, 5.0, "red", 6.0), Name("a", 5.05, 5.0, "red", 6.0)], [])
    assert ([text.get_text() for text in axes.texts], len(axes.lines)) == (["a"], 0)
    crowd = [Name("", 4.5 + x / 4, 4.5 + y / 4, "red", 12.0) for x in range(5) for y in range(5)]
    assert len(named([*crowd, Name("a", 5.0, 5.0, "red", 6.0)], []).lines) == 1
