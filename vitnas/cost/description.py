"""What `vitnas describe` prints: where a network's FLOPs and parameters are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vitnas.columns import columns
from vitnas.config.model import ModelConfig
from vitnas.config.notation import human
from vitnas.config.one_line import one_line
from vitnas.cost.closed_form import Cost, Row, closed_form
from vitnas.cost.mixers import counted_mixers
from vitnas.errors import printable

_COLUMNS = ("stage", "kind", "FLOPs", "share", "params", "share", "shared params", "reused FLOPs")


def describe_json(config: ModelConfig) -> dict[str, Any]:
    """Totals and one entry per stage and kind; FLOPs are multiply-adds of one image."""
    cost = closed_form(config)
    return {
        "name": config.name,
        "network": one_line(config),
        "key": config.key,
        "img_size": list(config.image_hw),
        "flops": cost.flops,
        "num_params": cost.num_params,
        "shared_params": cost.shared_params,
        "reused_flops": cost.reused_flops,
        "rows": [row._asdict() for row in _merged(cost.rows)],
    }


def describe_text(config: ModelConfig) -> str:
    """The same as a table for people."""
    cost = closed_form(config)
    height, width = config.image_hw
    lines = [
        f"{printable(config.name)}: {one_line(config)}",
        f"{height}x{width}x{config.in_chans} to {config.num_classes} classes, "
        f"{human(cost.flops)} FLOPs (multiply-adds, norms included), "
        f"{human(cost.num_params)} parameters",
        "",
        *describe_table(config),
    ]
    if cost.shared_params:
        lines += ["", _sharing(cost)]
    for name in counted_mixers([config]):
        lines += ["", f"{name} has no closed form: it was built and counted."]
    return "\n".join(lines)


def _sharing(cost: Cost) -> str:
    return (
        f"Passes share {human(cost.shared_params)} parameters "
        f"({cost.shared_params / cost.num_params:.0%}); weights that an earlier pass has used do "
        f"{human(cost.reused_flops)} of the FLOPs ({cost.reused_flops / cost.flops:.0%})."
    )


def _merged(rows: Iterable[Row]) -> list[Row]:
    """One row for each stage and kind, in order of their first appearance."""
    merged: dict[tuple[int | None, str], Row] = {}
    for row in rows:
        before = merged.get((row.stage, row.kind))
        if before is not None:
            row = row._replace(
                flops=before.flops + row.flops,
                params=before.params + row.params,
                shared_params=before.shared_params + row.shared_params,
                reused_flops=before.reused_flops + row.reused_flops,
            )
        merged[row.stage, row.kind] = row
    return list(merged.values())


def describe_table(config: ModelConfig) -> list[str]:
    """FLOPs and parameters by stage and kind, as lines of a table; the first stage is 1."""
    cost = closed_form(config)
    head, *lines, total = columns([_COLUMNS, *_cells(cost)], left=(0, 1))
    rule = "-" * len(head)
    return [head, rule, *lines, rule, total]


def _cells(cost: Cost) -> list[tuple[str, ...]]:
    cells = [
        (
            "" if row.stage is None else str(row.stage + 1),
            row.kind,
            human(row.flops),
            f"{row.flops / cost.flops:.1%}",
            human(row.params),
            f"{row.params / cost.num_params:.1%}",
            human(row.shared_params) if row.shared_params else "",
            human(row.reused_flops) if row.reused_flops else "",
        )
        for row in _merged(cost.rows)
    ]
    total = ("", "total", human(cost.flops), "", human(cost.num_params), "")
    return [*cells, (*total, human(cost.shared_params), human(cost.reused_flops))]
