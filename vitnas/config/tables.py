"""The tables in the pages: every field of a space, a model and a recipe, as its class says it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from vitnas.config.findings import as_number
from vitnas.config.matters import NETWORK_RULES, STAGE_RULES
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.config.space import SpaceConfig

END = "<!-- end of fields -->"
_FILES: dict[str, type[BaseModel]] = {"space": SpaceConfig, "model": ModelConfig, "recipe": Recipe}


def start_of(kind: str) -> str:
    """The line before the tables of a kind of file; `END` is the line after them."""
    return f"<!-- fields of a {kind}: made by `vitnas schema fields` -->"


def fields_page() -> str:
    """The tables of all files, each between its two lines."""
    return "\n".join(map(fields_of, _FILES))


def fields_of(kind: str) -> str:
    """The tables of `space`, `model` or `recipe`, from `start_of(kind)` to `END`."""
    tables = (f"### {title}\n\n{table}" for title, table in _tables(kind))
    return "\n".join((start_of(kind), "", *tables, END, ""))


def _tables(kind: str) -> Iterator[tuple[str, str]]:
    schema = _FILES[kind].model_json_schema()
    parts, is_model = schema["$defs"], kind == "model"
    yield f"The {'network' if is_model else kind}", _table("", schema, is_model)
    if is_model:
        yield "`stages`, each", _table("stages[].", parts["StageConfig"], is_model)
    for name, field in schema["properties"].items():
        if "$ref" in field:
            yield f"`{name}`", _table(f"{name}.", parts[field["$ref"].rpartition("/")[2]], is_model)


def _table(prefix: str, part: dict[str, Any], is_model: bool) -> str:
    """The fields of a part; only a model's table says when a field matters."""
    head = ["field", "values", "default", *["matters when"] * is_model, "meaning"]
    rows = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, field in part["properties"].items():
        default = _default(field, name in part.get("required", ()))
        matters = [_matters(prefix + name)] * is_model
        cells = [f"`{name}`", _values(field), default, *matters, field["description"]]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _matters(address: str) -> str:
    stage = address.removeprefix("stages[].")
    rule = NETWORK_RULES.get(address) if stage == address else STAGE_RULES.get(stage)
    return rule.when if rule else "always"


def _default(field: dict[str, Any], is_required: bool) -> str:
    if is_required:
        return "required"
    if "$ref" in field:
        return ""
    default = field.get("default")
    if isinstance(default, float) and "e" in repr(default):  # YAML reads 1e-06 as text
        return f"`{as_number(default)}`"
    return f"`{json.dumps(default)}`"


def _values(field: dict[str, Any]) -> str:
    """The range of a field in words."""
    if "anyOf" in field:
        kinds = [kind for kind in field["anyOf"] if kind.get("type") not in ("null", "object")]
        return " or ".join(filter(None, map(_values, kinds)))
    named = field.get("enum", [field["const"]] if "const" in field else [])
    if named:
        return ", ".join(f"`{value}`" for value in named)
    kind = field.get("type")
    if kind in ("integer", "number"):
        return _range(field, "whole number" if kind == "integer" else "number")
    if kind == "array":
        return "a list"
    return {"boolean": "`true`, `false`", "string": "text", "object": "a mapping"}.get(
        kind or "", ""
    )


def _range(field: dict[str, Any], kind: str) -> str:
    ends = {
        "from {:,.10g}": field.get("minimum"),
        "above {:,.10g}": field.get("exclusiveMinimum"),
        "to {:,.10g}": field.get("maximum"),
        "below {:,.10g}": field.get("exclusiveMaximum"),
    }
    words = (text.format(end) for text, end in ends.items() if end is not None)
    return " ".join((kind, *words)).replace(",", " ")
