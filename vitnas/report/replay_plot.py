"""A plot of replayed searches: hypervolume against the share of the epochs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitnas.engine.samplers import colour
from vitnas.files import write_bytes, writing
from vitnas.plotting import INK, empty_figure, open_axes, small_png
from vitnas.replay.comparison import MEASURES, Pair
from vitnas.replay.table import Table

STYLES = {"none": ":", "curve": "-", "front": "--", "both": "-."}
_LOWEST = 60.0
_SPENT = np.geomspace(0.005, 1.0, 160)


def replay_png(table: Table, pairs: Sequence[Pair]) -> bytes:
    """A PNG of 1210 x 495 pixels with a panel for each measure and a line for each pair.

    Lines are means over seeds. Colours are samplers, line styles are pruners. The axis of epochs is
    logarithmic, because lines differ most in its first tenth.
    """
    figure = empty_figure(11.0, 4.5)
    seeds = len(pairs[0].traces)
    title = f"{table.name}: {len(table.networks)} networks, means of {seeds} replayed searches"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, color=INK)
    panels = figure.subplots(1, len(MEASURES), sharey=True)
    for axes, (of, floor) in zip(panels, MEASURES.items(), strict=True):
        _dress(axes, f"hypervolume {floor}")
        for pair in pairs:
            axes.plot(
                100 * _SPENT,
                [100 * pair.at(float(share), of).mean for share in _SPENT],
                color=colour(pair.sampler),
                linestyle=STYLES[pair.pruner],
                linewidth=1.5,
                label=f"{pair.sampler} / {pair.pruner}",
            )
    panels[0].set_ylabel("% of the whole table's", color=INK, fontsize=9)
    names = panels[0].get_legend_handles_labels()
    figure.legend(*names, loc="outside right center", fontsize=8, title="sampler / pruner")
    return small_png(figure)


def write_replay_png(table: Table, pairs: Sequence[Pair], file: Path) -> None:
    """Write the plot of `replay_png` to a file.

    Raises:
        RunError: the file cannot be written.
    """
    picture = replay_png(table, pairs)
    with writing(file):
        write_bytes(file, picture)


def _dress(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set_xlabel("% of the epochs that training the whole table takes", color=INK, fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(100 * _SPENT[0], 100)
    axes.set_xticks(
        [0.5, 1, 2, 5, 10, 20, 50, 100], ["0.5", "1", "2", "5", "10", "20", "50", "100"]
    )
    axes.minorticks_off()
    axes.set_ylim(_LOWEST, 100.5)
    axes.axhline(99, color="#8b8f97", linewidth=0.8)
    axes.axvline(10, color="#8b8f97", linewidth=0.8)
    axes.tick_params(labelsize=8, colors=INK)
    open_axes(axes)
