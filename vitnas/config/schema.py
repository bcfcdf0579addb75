"""JSON schemas of model, space and recipe files, made from the configuration classes, for editors.

A space's schema is the model's, in which every value may also be a searched one.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from vitnas.config.mixers import GROUP, MIXERS
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.config.space import SpaceConfig
from vitnas.plugins import announced

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_GROUPS = {
    "type": "string",
    "pattern": r"^(\s*\[\s*[1-9]\d*(\s*,\s*[1-9]\d*)*\s*\])+\s*$",
    "description": "Group schedule: one bracket a stage, one number a pass, e.g. [8,2][4,1][1,1].",
}


def model_schema() -> dict[str, Any]:
    """The schema of a model file."""
    schema = ModelConfig.model_json_schema()
    schema["properties"]["groups"] = dict(_GROUPS)
    for stage in (schema["$defs"]["StageConfig"],):
        stage["properties"]["token_mixer"]["anyOf"][0] = {"enum": [*MIXERS, *announced(GROUP)]}
        groups = stage["properties"]["groups"]
        stage["properties"]["groups"] = {"anyOf": [groups, dict(_GROUPS)], "default": [1]}
    return {"$schema": _DIALECT, "title": "vitnas model file", **_without_title(schema)}


def space_schema() -> dict[str, Any]:
    """The schema of a space file."""
    schema = SpaceConfig.model_json_schema()
    model = model_schema()
    inner = model.pop("$defs")
    for name in ("$schema", "title"):
        model.pop(name)
    _searchable(inner["StageConfig"]["properties"]["token_mixer"]["anyOf"][-1])
    definitions = {name: _searchable(deepcopy(part)) for name, part in inner.items()}
    schema["$defs"] |= definitions | _axes()
    schema["properties"]["model"] = _searchable(model)
    for part in (model, definitions["StageConfig"]):  # a base has what is left out
        del part["required"]
    schema["required"] = ["name"]
    whole = {"required": ["model"], "properties": {"model": {"required": ["stages"]}}}
    schema |= {"if": {"not": {"required": ["extends"]}}, "then": whole}
    return {"$schema": _DIALECT, "title": "vitnas space file", **_without_title(schema)}


def recipe_schema() -> dict[str, Any]:
    """The schema of a recipe file."""
    schema = Recipe.model_json_schema()
    return {"$schema": _DIALECT, "title": "vitnas recipe file", **_without_title(schema)}


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


def _searchable(schema: dict[str, Any]) -> dict[str, Any]:
    """`schema` of a mapping with an axis allowed for every property and every list item."""
    for name, value in schema.get("properties", {}).items():
        described = value.pop("description", None)
        if "items" in value:
            value["items"] = {"anyOf": [value["items"], {"$ref": "#/$defs/axis"}]}
        wrapped: dict[str, Any] = {"anyOf": [value, {"$ref": "#/$defs/axis"}]}
        if described:
            wrapped["description"] = described
        schema["properties"][name] = wrapped
    return schema


def _axes() -> dict[str, Any]:
    """The three kinds of searched values."""
    name = {"type": "string", "description": "Axes of one name are drawn together."}

    def axis(kind: str, value: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {kind: value, "name": name, **more},
            "required": [kind],
            "additionalProperties": False,
        }

    def ends(number: str) -> dict[str, Any]:
        return {"type": "array", "items": {"type": number}, "minItems": 2, "maxItems": 2}

    log = {"type": "boolean", "description": "Draw evenly over the logarithm."}
    return {
        "axis": {
            "anyOf": [
                axis(
                    "choice",
                    {"type": "array", "minItems": 1},
                    labels={"type": "array", "items": {"type": "string"}},
                ),
                axis("int", ends("integer"), step={"type": "integer", "minimum": 1}, log=log),
                axis("float", ends("number"), step={"type": "number"}, log=log),
            ]
        }
    }
