"""Names beside the marks of a plot, where they hide least.

The package adjustText moves names from all marks alike. It does not know how wide a mark is, so
names lie on rings and large marks; here they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from math import cos, dist, radians, sin
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Spot = tuple[float, float]
_GAPS = (2.5, 4.5, 7.0, 10.0, 15.0, 21.0, 28.0)
_TURNS = (0, 180, 90, 270, 45, 315, 135, 225)
_FAR, _SAME = 9.0, 8.0
"""In points: from here on a name has a line to its mark; up to here two marks share a name."""


class Name(NamedTuple):
    """A name at a mark of axes, in data units.

    Attributes:
        text: empty = a mark without a name.
        x, y: the middle of the mark.
        colour: of the text.
        width: of the mark, in points.
    """

    text: str
    x: float
    y: float
    colour: str
    width: float


class _Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    low: float
    right: float
    high: float

    @property
    def area(self) -> float:
        return (self.right - self.left) * (self.high - self.low)

    def wider(self, gap: float) -> _Box:
        return self._replace(left=self.left - gap, right=self.right + gap)

    def shared(self, other: _Box) -> float:
        """The area that lies in both."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.high, other.high) - max(self.low, other.low)
        return max(0.0, width) * max(0.0, height)

    def nearest(self, spot: Spot) -> Spot:
        """The place of the box that is nearest to a spot."""
        x, y = spot
        return min(max(x, self.left), self.right), min(max(y, self.low), self.high)


def name_points(
    axes: Any, names: Sequence[Name], lines: Iterable[Sequence[Spot]], size: float
) -> None:
    """Write names beside their marks, apart from each other, from all marks and from lines.

    Each takes the place that hides least, and of these the nearest, in the order given. A name that
    is far from its mark has a line to it. Of equal names at nearly one place, the first is written.
    The axes must have their final place and limits.

    Args:
        axes: matplotlib's.
        names: one for each mark.
        lines: corners of the drawn lines, in data units.
        size: of the text, in points.
    """
    pixel = axes.figure.dpi / 72
    spots = [_spot(axes, (name.x, name.y)) for name in names]
    taken = [
        _around(spot, name.width * pixel, name.width * pixel)
        for spot, name in zip(spots, names, strict=True)
    ]
    crossed = _along([[_spot(axes, corner) for corner in line] for line in lines], 3 * pixel)
    bounds, written = _Box(*axes.bbox.extents), list[tuple[str, str, Spot]]()
    for name, spot in zip(names, spots, strict=True):
        before = (at for text, colour, at in written if (text, colour) == (name.text, name.colour))
        if not name.text or any(dist(spot, at) < _SAME * pixel for at in before):
            continue
        text = axes.annotate(name.text, (name.x, name.y), (0, 0), textcoords="offset points")
        text.set(fontsize=size, color=name.colour, ha="center", va="center", in_layout=False)
        extent = text.get_window_extent()
        places = _places(spot, extent.width, extent.height, name.width / 2, pixel)
        bad = [
            _hidden(one, taken, crossed, bounds) + dist(one.nearest(spot), spot) for one in places
        ]
        best = places[bad.index(min(bad))]
        taken.append(best.wider(3 * pixel))
        written.append((name.text, name.colour, spot))
        _put(text, best, spot, (name.width / 2 + _FAR) * pixel)


def _spot(axes: Any, point: Spot) -> Spot:
    """Pixels of a point in data units."""
    x, y = axes.transData.transform(point)
    return float(x), float(y)


def _around(spot: Spot, width: float, height: float) -> _Box:
    x, y = spot
    return _Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _along(lines: Iterable[Sequence[Spot]], step: float) -> npt.NDArray[np.float64]:
    """`(n, 2)`: places on lines, every `step` pixels."""
    import numpy as np

    parts = [
        np.linspace(start, end, max(2, round(dist(start, end) / step)))
        for line in lines
        for start, end in pairwise(line)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, 2))


def _places(spot: Spot, width: float, height: float, radius: float, pixel: float) -> list[_Box]:
    """Where a text of this size may stand: around its mark, ever farther from it."""
    found = []
    for far, turn in product(_GAPS, _TURNS):
        dx, dy = cos(radians(turn)), sin(radians(turn))
        reach = (radius + far) * pixel
        x = spot[0] + dx * reach + round(dx) * width / 2
        y = spot[1] + dy * reach + round(dy) * height / 2
        found.append(_around((x, y), width, height))
    return found


def _hidden(
    place: _Box, taken: Sequence[_Box], crossed: npt.NDArray[np.float64], bounds: _Box
) -> float:
    """How much a text there hides or is hidden by: marks, names, lines, the end of the axes."""
    low, high = (place.left, place.low), (place.right, place.high)
    over = ((crossed > low) & (crossed < high)).all(axis=1).sum()
    covered = sum(place.shared(box) for box in taken) + place.area - place.shared(bounds)
    return float(30 * covered + 50 * over)


def _put(text: Any, place: _Box, spot: Spot, far: float) -> None:
    """Move a text to its place, and draw a line to its mark if that is far."""
    pixel = text.figure.dpi / 72
    x, y = (place.left + place.right) / 2, (place.low + place.high) / 2
    text.set_position(((x - spot[0]) / pixel, (y - spot[1]) / pixel))
    near = place.nearest(spot)
    if dist(near, spot) > far:
        ends = text.axes.transData.inverted().transform([spot, near])
        text.axes.plot(*ends.T, color=text.get_color(), linewidth=0.5, zorder=1.5)
