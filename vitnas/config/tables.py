"""The tables of `space/README.md`: every field of a model, as its class describes it."""

from __future__ import annotations

import json
from typing import Any

from vitnas.config.files import as_number
from vitnas.config.matters import NETWORK_RULES, STAGE_RULES
from vitnas.config.model import ModelConfig

START, END = "<!-- fields: made by `vitnas schema fields` -->", "<!-- end of fields -->"
_HEAD = "| field | values | default | matters when | meaning |\n|---|---|---|---|---|\n"


def fields_page() -> str:
    """The part of the page between `START` and `END`, both included."""
    schema = ModelConfig.model_json_schema()
    parts = schema["$defs"]
    sections = [("The network", "", schema), ("`stages`, each", "stages[].", parts["StageConfig"])]
    for name, field in schema["properties"].items():
        if "$ref" in field:
            part = parts[field["$ref"].rpartition("/")[2]]
            sections.append((f"`{name}`", f"{name}.", part))
    tables = (f"### {title}\n\n{_table(prefix, part)}" for title, prefix, part in sections)
    return "\n".join((START, "", *tables, END, ""))


def _table(prefix: str, part: dict[str, Any]) -> str:
    required = part.get("required", ())
    rows = (
        f"| `{name}` | {_values(field)} | {_default(field, name in required)} "
        f"| {_matters(prefix + name)} | {field.get('description', '')} |\n"
        for name, field in part["properties"].items()
    )
    return _HEAD + "".join(rows)


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
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
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
        "from {:,.9g}": field.get("minimum"),
        "above {:,.9g}": field.get("exclusiveMinimum"),
        "to {:,.9g}": field.get("maximum"),
        "below {:,.9g}": field.get("exclusiveMaximum"),
    }
    words = (text.format(end) for text, end in ends.items() if end is not None)
    return " ".join((kind, *words)).replace(",", " ")
