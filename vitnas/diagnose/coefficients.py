"""How the learnable residual coefficients changed in training (SReT, Fig. 6 and 16)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from vitnas.diagnose import draw
from vitnas.diagnose.observer import Finding
from vitnas.errors import DataError, VitnasError
from vitnas.nn.layers.residual import residual_scales
from vitnas.plotting import COLOURS

KEY = "residual_scales"
"""Key of the coefficients in a line of a training's log."""
_MOST_PANELS = 12
_MOST_LAYERS = 3  # non-linear layers drawn in a panel: the first ones and the last

_NAME = re.compile(
    r"stages\.(\d+)\.blocks\.(\d+)\.(?:(?:block\.)?residual([12])|nlls\.(\d+)\.residual)"
    r"\.(branch|identity)"
)


class Coefficient(NamedTuple):
    """A learnable scalar: its block (`1.2`: stage 1, block 2), its place, and what it scales."""

    block: str
    site: str
    on: str


def coefficient(name: str) -> Coefficient | None:
    """The coefficient of a parameter's name (`stages.0.blocks.1.residual1.branch`), or None."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    stage, block, residual, layer, on = found.groups()
    site = {"1": "mixer", "2": "mlp"}.get(residual, f"nll {int(layer or 0) + 1}")
    return Coefficient(f"{int(stage) + 1}.{int(block) + 1}", site, on)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The lines of a training's log, JSON objects with `epoch`.

    Raises:
        DataError: it cannot be read, or a line is no such object (the error has its number).
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file in UTF-8"
        raise DataError(f"{path}: {reason.lower()}") from None
    return [_entry(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def evolution(log: Sequence[Mapping[str, Any]]) -> dict[Coefficient, list[float | None]]:
    """Each coefficient's value in every line of a log that has coefficients."""
    names = {name: None for entry in log for name in entry.get(KEY, ())}
    known = {name: found for name in names if (found := coefficient(name)) is not None}
    return {
        found: [entry[KEY].get(name) for entry in log if KEY in entry]
        for name, found in known.items()
    }


def evolution_finding(network: nn.Module, log: Path | None) -> Finding:
    """The coefficients after each epoch in a training's log, with a figure.

    Source: SReT, Fig. 6 (2) and 16. In the paper's Eq. 9 and 10 alpha, gamma and zeta multiply the
    branches; in its Section 5.8 they multiply the identities. Here a coefficient has the name of
    what it multiplies.

    Args:
        network: the network; without learnable residuals it has no coefficients.
        log: a `log.jsonl`, or None.

    Raises:
        DataError: the log is damaged.
        VitnasError: the network has no coefficients, or there is no log of them.
    """
    if not residual_scales(network):
        raise VitnasError("no residual of this network is learnable (residual: lrc)")
    entries = [] if log is None else [entry for entry in read_log(log) if KEY in entry]
    if not entries:
        where = "there is no training log" if log is None else f"{log} has no coefficients"
        raise VitnasError(f"{where}; a long training (vitnas train) writes one into its folder")
    curves, epochs = evolution(entries), [entry["epoch"] for entry in entries]
    numbers = {
        "meaning": "learnable residual coefficients after each epoch (SReT, Fig. 6 and 16). "
        "branch multiplies the output of the mixer, MLP or non-linear layer; identity multiplies "
        "its input in the residual sum. All start at 1. The passes of a block share those of "
        "mixer and mlp. If a training keeps a moving average of the weights, they are the "
        "average's",
        "epochs": epochs,
        "blocks": _by_block(curves),
    }
    found = {"branch": "branches", "identity": "identities"}
    on = next(on for on in found if any(curve.on == on for curve in curves))
    final = [values[-1] for curve, values in curves.items() if curve.on == on]
    known = [value for value in final if value is not None]
    summary = f"after epoch {epochs[-1]} the {found[on]} have {min(known):.2f} to {max(known):.2f}"
    return Finding(summary, numbers, _figure(epochs, curves))


def _entry(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    if not isinstance(entry, dict) or not isinstance(entry.get("epoch"), int):
        raise DataError(f"{path}: line {number}: not a JSON object with an epoch")
    scales = entry.get(KEY, {})
    if not isinstance(scales, dict) or not all(_is_number(value) for value in scales.values()):
        raise DataError(f"{path}: line {number}: {KEY} are not numbers by name")
    return entry


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _by_block(
    curves: Mapping[Coefficient, list[float | None]],
) -> dict[str, dict[str, dict[str, list[float | None]]]]:
    tree: dict[str, dict[str, dict[str, list[float | None]]]] = {}
    for found, values in curves.items():
        tree.setdefault(found.block, {}).setdefault(found.site, {})[found.on] = [
            None if value is None else round(value, 6) for value in values
        ]
    return tree


def _figure(epochs: list[int], curves: Mapping[Coefficient, list[float | None]]) -> bytes:
    blocks = list(dict.fromkeys(found.block for found in curves))
    shown = [blocks[at] for at in draw.some_ticks(len(blocks), _MOST_PANELS)]
    columns = len(shown) if len(shown) < 4 else min(4, ceil(sqrt(len(shown))))
    rows = -(-len(shown) // columns)
    left_out = f" {len(shown)} of {len(blocks)} blocks are drawn." if shown != blocks else ""
    figure = draw.new_figure(
        "Evolution of the learnable residual coefficients",
        f"Solid: on the branch; dashed: on the identity. All start at 1.{left_out}",
        max(5.5, 2.2 * columns + 1.3),
        1.9 * rows + 1.1,
    )
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    sites = _drawn_sites(curves)
    for place, axes in enumerate(panels.flat):
        if place >= len(shown):
            axes.set_visible(False)
            continue
        name = f"block {shown[place]}"
        below, left = place + columns >= len(shown), place % columns == 0
        draw.dress(axes, "epoch" if below else "", "coefficient" if left else "", name)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.tick_params(labelbottom=below)
        _draw_block(axes, epochs, curves, shown[place], sites)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize=8, frameon=False)
    return draw.png(figure)


def _drawn_sites(curves: Mapping[Coefficient, list[float | None]]) -> list[str]:
    """The coefficients to draw. Of many non-linear layers only the first ones and the last."""
    sites = list(dict.fromkeys(found.site for found in curves))
    layers = [site for site in sites if site.startswith("nll")]
    dropped = layers[_MOST_LAYERS - 1 : -1] if len(layers) > _MOST_LAYERS else []
    return [site for site in sites if site not in dropped]


def _draw_block(
    axes: Any,
    epochs: list[int],
    curves: Mapping[Coefficient, list[float | None]],
    block: str,
    sites: list[str],
) -> None:
    labelled: set[str] = set()
    for found, values in curves.items():
        if found.block == block and found.site in sites:
            colour = COLOURS[sites.index(found.site) % len(COLOURS)]
            style = "-" if found.on == "branch" else "--"
            label = None if found.site in labelled else found.site
            labelled.add(found.site)
            mark = "o" if len(epochs) == 1 else ""
            axes.plot(epochs, values, style, marker=mark, color=colour, lw=1.5, label=label)
