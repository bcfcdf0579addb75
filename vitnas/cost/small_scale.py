"""SKA's Table 1, built by grafts: printed sizes and those of the built networks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from torch import nn

from vitnas.config.files import read_yaml, validate
from vitnas.config.mixers import StaticKeyName
from vitnas.config.parts import Frozen
from vitnas.cost.operators import count_flops
from vitnas.nn.graft import build_network, graft
from vitnas.nn.graft.networks import image_size
from vitnas.nn.zoo.table import agrees

ROWS = Path(__file__).parents[1] / "nn" / "graft" / "small_scale.yaml"

_HEAD = """\
| name | params printed | built | FLOPs printed | built, doubled | why they differ |
|---|--:|--:|--:|--:|---|
"""


class PrintedRow(Frozen):
    """A row of the table.

    Attributes:
        network: which of the four baselines.
        mixer: what replaces the attention of all its blocks; None in the baseline's own row.
        params, flops: millions and G, with the paper's digits; its FLOPs are doubled.
        why: why a figure is not what the network has; empty where both agree.
    """

    network: str
    mixer: StaticKeyName | None = None
    params: str
    flops: str
    why: str = ""


class Size(NamedTuple):
    """What a network has: parameters, and multiply-adds of one image."""

    num_params: int
    flops: int


@cache
def small_scale_rows() -> dict[str, PrintedRow]:
    """All rows by name."""
    tree = read_yaml(ROWS)
    return {name: validate(PrintedRow, entry, file=ROWS) for name, entry in tree.items()}


def small_scale_size(name: str) -> Size:
    """The size of a row's network, which is built and counted."""
    row = small_scale_rows()[name]
    model = build_network(row.network)
    graft(model, mixer=row.mixer)
    return size_of(model)


def size_of(model: nn.Module, in_chans: int = 3) -> Size:
    """The size of a network that can be grafted on, for images of the size it was built for."""
    params = sum(parameter.numel() for parameter in model.parameters())
    return Size(params, count_flops(model, (in_chans, *image_size(model))))


def row_agrees(row: PrintedRow, size: Size) -> tuple[bool, bool]:
    """Whether the printed parameters and FLOPs are at most one in their last digit away."""
    params, flops = size.num_params / 1e6, 2 * size.flops / 1e9
    return agrees(row.params, params), agrees(row.flops, flops)


def small_scale_table() -> str:
    """The table of docs/grafts.md; `vitnas graft --table` prints it."""
    return _HEAD + "".join(
        _line(name, row, small_scale_size(name)) for name, row in small_scale_rows().items()
    )


def _line(name: str, row: PrintedRow, size: Size) -> str:
    same = row_agrees(row, size)
    params, flops = (
        figure if agreed else f"**{figure}**"
        for figure, agreed in zip((row.params, row.flops), same, strict=True)
    )
    built = f"{size.num_params / 1e6:.3f}", f"{2 * size.flops / 1e9:.3f}"
    return f"| `{name}` | {params} | {built[0]} | {flops} | {built[1]} | {row.why} |\n"
