"""A network as a small drawing of text, for the labels of the page's plots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from vitnas.config.one_line import line_parts
from vitnas.records import TrialRecord
from vitnas.report.marks import colour
from vitnas.report.networks import config_of, network_line

_HEIGHTS = "▂▃▄▅▆▇█"
_BETWEEN = "\u2009"  # a thin space
_WIDTH = 56  # a longer line hides the plot


def network_drawing(trial: TrialRecord) -> str:
    """A line for each stage: its blocks as bars, its words, its tokens; then the network's own.

    A bar is a block in the colour of its token mixer, and its height is the stage's width beside
    the widest stage's. Two passes through the blocks are `↻2`. Lines end in `<br>`; of plotly's
    HTML there is `<span style="color: ...">`, and `<` of names is escaped.
    """
    config = config_of(trial)
    if config is None:
        return _escaped(network_line(trial))
    texts, whole = line_parts(config)
    widest = max(stage.embed_dim for stage in config.stages)
    lines = []
    for stage, grid, words in zip(config.stages, config.grids, texts, strict=True):
        height = _HEIGHTS[round(stage.embed_dim / widest * (len(_HEIGHTS) - 1))]
        passes = f" ↻{stage.passes}" if stage.passes > 1 else ""
        bars = _bars(stage.mixers, height)
        lines.append(f"{bars}{passes} {_escaped(words)}, {grid[0]} × {grid[1]} tokens")
    return "<br>".join([*lines, *map(_escaped, _short_lines(whole))])


def _short_lines(parts: Sequence[str]) -> list[str]:
    """Parts with ` | ` between them, in lines of `_WIDTH` characters where no part is longer."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= _WIDTH:
            lines[-1] += f" | {part}"
        else:
            lines.append(part)
    return lines


def _bars(mixers: tuple[str, ...], height: str) -> str:
    """Neighbours of one colour share a span, to keep the page small."""
    return _BETWEEN.join(
        f'<span style="color:{colour(mixer)}">{_BETWEEN.join(height for _ in run)}</span>'
        for mixer, run in groupby(mixers)
    )


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;")
