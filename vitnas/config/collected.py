"""Which layers broad attention collects from: the texts of the field `broad.layers`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from vitnas.config.findings import RuleError

_FORM = r"^(all|stages|(last|every):[1-9][0-9]{0,3})$"


def _checked(layers: str) -> str:
    if not re.match(_FORM, layers):
        raise RuleError("must be all, stages, last:K or every:K with K from 1", "", layers, "all")
    return layers


Layers = Annotated[
    str, AfterValidator(_checked), WithJsonSchema({"type": "string", "pattern": _FORM})
]
"""`all`, `stages`, `last:K` or `every:K`."""


def collected(layers: str | None, stages: Sequence[int], *, flat: bool) -> tuple[int, ...]:
    """Indices of the layers that are collected; the last layer is always one of them.

    Args:
        layers: as `BroadConfig.layers`.
        stages: of each layer that can be collected, the index of its stage.
        flat: whether the network has one stage.
    """
    kind, _, number = (layers or ("all" if flat else "stages")).partition(":")
    count = len(stages)
    if kind == "stages":
        return tuple({stage: index for index, stage in enumerate(stages)}.values())
    if kind == "every":
        return tuple(reversed(range(count - 1, -1, -int(number))))
    return tuple(range(max(0, count - int(number)) if number else 0, count))


def shortest(layers: str | None, stages: Sequence[int], *, flat: bool) -> str | None:
    """One spelling for all that collect the same layers."""
    wanted = collected(layers, stages, flat=flat)
    spellings = (None, "all", f"last:{len(wanted)}")
    same = (text for text in spellings if collected(text, stages, flat=flat) == wanted)
    return next(same, layers)  # `every:K`: another K collects other layers
