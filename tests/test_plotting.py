"""The look that all plots share."""

from __future__ import annotations

import io

from PIL import Image

from vitnas.plotting import empty_figure, open_axes, png


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
