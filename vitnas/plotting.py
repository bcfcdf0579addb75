"""The look that all plots share: matplotlib without pyplot or display, colours, grid."""

from __future__ import annotations

import io
from typing import Any

INK, FAINT, GRID = "#22262e", "#5b626e", "#e4e6ea"
"""Of text and lines, of notes, and of the grid."""
COLOURS = ("#3b78d8", "#e0762a", "#0f9d94", "#8059d6", "#c43d86", "#7c9a22")
"""Of what has no colour of its own."""
DPI = 110


def empty_figure(width: float, height: float, dpi: int = DPI) -> Any:
    """A figure of `width` x `height` inches, for a canvas in memory."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png(figure: Any, optimize: bool = False) -> bytes:
    """The figure as a PNG; `optimize` makes it smaller and takes longer."""
    image = io.BytesIO()
    figure.savefig(
        image, format="png", metadata={"Software": "vitnas"}, pil_kwargs={"optimize": optimize}
    )
    return image.getvalue()


def small_png(figure: Any, colours: int = 64) -> bytes:
    """The figure as a PNG of few colours, which is smaller; it names its maker, too."""
    from PIL import Image, PngImagePlugin

    small, mark = io.BytesIO(), PngImagePlugin.PngInfo()
    mark.add_text("Software", "vitnas")
    drawn = Image.open(io.BytesIO(png(figure))).convert("RGB").quantize(colours)
    drawn.save(small, format="png", optimize=True, pnginfo=mark)
    return small.getvalue()


def svg(figure: Any) -> bytes:
    """The figure as an SVG, the same bytes each time; its texts are drawn as outlines."""
    import matplotlib

    image = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "vitnas"}):
        figure.savefig(image, format="svg", metadata={"Creator": "vitnas", "Date": None})
    return image.getvalue()


def is_picture(head: bytes) -> bool:
    """Whether a file of ours, a PNG or an SVG, begins with `head`."""
    is_png = head.startswith(b"\x89PNG") and b"Software\0vitnas" in head
    return is_png or (head.startswith(b"<?xml") and b"<dc:title>vitnas</dc:title>" in head)


def open_axes(axes: Any) -> None:
    """Give axes a light grid, and no line at the top and at the right."""
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
