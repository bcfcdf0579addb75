"""Common parts of all figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from vitnas import plotting
from vitnas.diagnose.layers import Layer
from vitnas.plotting import FAINT, INK, empty_figure, open_axes

DEPTH = "viridis"
_MOST_TICKS = 16


def new_figure(title: str, note: str, width: float, height: float) -> Any:
    """A figure, sized in inches, with a title and a line that explains the numbers."""
    figure = empty_figure(width, height)
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=FAINT)
    return figure


def png(figure: Any) -> bytes:
    return plotting.png(figure, optimize=True)


def picture(image: Tensor) -> npt.NDArray[np.float64]:
    """`(C, H, W)` bytes -> `(H, W, 3)` from 0 to 1; one channel is shown grey."""
    pixels = image.cpu().numpy().transpose(1, 2, 0) / 255
    if pixels.shape[-1] != 3:
        pixels = np.repeat(pixels.mean(-1, keepdims=True), 3, axis=-1)
    return np.asarray(pixels, dtype=np.float64)


def dress(axes: Any, x: str, y: str, title: str = "") -> None:
    """Give axes labels, a light grid and no box."""
    axes.set_xlabel(x, color=INK, fontsize=9)
    axes.set_ylabel(y, color=INK, fontsize=9)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.tick_params(labelsize=8, colors=INK)
    open_axes(axes)


def heat_map(
    axes: Any, matrix: Tensor, labels: Sequence[str], title: str, axis: str, most: int = _MOST_TICKS
) -> Any:
    """Draw a square matrix of values from 0 to 1 with labels at both axes.

    Returns:
        matplotlib's image, for a colour bar.
    """
    image = axes.imshow(matrix.cpu().numpy(), cmap=DEPTH, vmin=0.0, vmax=1.0)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(axis, fontsize=9, color=INK)
    axes.set_ylabel(axis, fontsize=9, color=INK)
    positions = some_ticks(len(labels), most)
    shown = [labels[position] for position in positions]
    long = len(shown) > 20 or (max(map(len, shown)) > 2 and len(shown) > 6)
    axes.set_xticks(positions, shown, fontsize=8, rotation=90 if long else 0)
    axes.set_yticks(positions, shown, fontsize=8)
    return image


def colour_bar(figure: Any, image: Any, panels: Any, label: str, shrink: float = 0.9) -> None:
    """Add the colour bar of all heat maps of a figure."""
    bar = figure.colorbar(image, ax=panels, shrink=shrink)
    bar.set_label(label, fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, colors=INK)


def name_layers(axes: Any, layers: Sequence[Layer], axis: str) -> None:
    """Label the x axis of a plot over layers."""
    positions = some_ticks(len(layers), 2 * _MOST_TICKS)
    labels = [layers[position].label for position in positions]
    long = max(map(len, labels)) > 2 and len(labels) > 10
    axes.set_xticks(positions, labels, rotation=90 if long else 0)
    axes.set_xlabel(axis, color=INK, fontsize=9)
    axes.set_xlim(-0.6, len(layers) - 0.4)


def block_axis(layers: Sequence[Layer]) -> str:
    """The label of an axis of layers."""
    staged = any("." in layer.label for layer in layers)
    passes = any("p" in layer.label for layer in layers)
    return f"{'stage.block' if staged else 'block'}{', p = pass' if passes else ''}"


def some_ticks(number: int, most: int = _MOST_TICKS) -> list[int]:
    """At most `most` of the positions 0 .. number - 1, evenly spaced, starting at 0."""
    step = -(-number // most)
    return list(range(0, number, max(1, step)))


def depth_colours(number: int) -> list[Any]:
    """Colours from the first to the last layer. None is too light for a white background."""
    from matplotlib import colormaps

    scale = colormaps[DEPTH]
    return [scale(0.88 * index / max(1, number - 1)) for index in range(number)]


def stage_title(layer: Layer, several: bool) -> str:
    """`stage 2: 14 x 14 tokens`."""
    grid = f"{layer.tokens} tokens"
    if layer.grid is not None:
        grid = f"{layer.grid[0]} x {layer.grid[1]} tokens"
        grid += f" + {layer.prefix}" if layer.prefix else ""
    return f"stage {layer.stage}: {grid}" if several else grid
