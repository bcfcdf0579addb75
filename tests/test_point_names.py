"""Names lie where they hide nothing."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from vitnas.plotting import empty_figure
from vitnas.point_names import Name, name_points


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
