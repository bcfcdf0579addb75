"""The look that all plots share."""

from __future__ import annotations

import io

from PIL import Image

from vitnas.plotting import empty_figure, is_picture, open_axes, png, small_png, svg


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
