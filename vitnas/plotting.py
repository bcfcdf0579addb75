"""The look that all plots share: matplotlib without pyplot or display, colours, grid."""

from __future__ import annotations

import io
from typing import Any

INK, FAINT, GRID = "#22262e", "#5b626e", "#e4e6ea"
"""Of text and lines, of notes, and of the grid."""
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


def open_axes(axes: Any) -> None:
    """Give axes a light grid, and no line at the top and at the right."""
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
