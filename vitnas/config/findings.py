"""What pydantic finds wrong, in our words: rule, address, value and the nearest valid value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from vitnas.errors import ConfigError, join_address, nearest_name

_UNION_LABELS = {"int", "str", "float", "bool", "constrained-int"}
_NUMBER_AS_TEXT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")
NUMBER_AS_TEXT = "YAML reads this as text; a number needs a point and a signed exponent"


class RuleError(ValueError):
    """A broken rule, raised inside a pydantic validator; becomes a `ConfigError`."""

    def __init__(self, rule: str, address: str = "", value: Any = None, nearest: Any = None):
        super().__init__(rule)
        self.rule, self.address, self.value, self.nearest = rule, address, value, nearest


class FieldError(RuleError):
    """A broken rule of one field alone."""


def as_config_error(
    error: ValidationError, model: type[BaseModel], file: str | Path | None = None
) -> ConfigError:
    """pydantic's first finding, in our words."""
    return _in_words(min(error.errors(), key=_order), model, file)


def field_error(
    error: ValidationError, model: type[BaseModel], *, are_all: bool = True
) -> ConfigError | None:
    """The first finding about a field alone; None where only rules across fields are broken.

    `are_all` = False: the tree is a part of one, so a missing field is no finding.
    """
    findings = error.errors()
    found = [finding for finding in findings if _is_of_field(finding, findings)]
    if not are_all:
        found = [finding for finding in found if finding["type"] != "missing"]
    return _in_words(min(found, key=_order), model) if found else None


def _is_of_field(finding: Any, findings: Sequence[Any]) -> bool:
    """Whether it is about a field alone. A list is too short where its items are wrong, too."""
    broken, place = finding.get("ctx", {}).get("error"), finding["loc"]
    if isinstance(broken, RuleError):
        return not broken.address or isinstance(broken, FieldError)
    inner = (other["loc"] for other in findings if len(other["loc"]) > len(place))
    is_short = finding["type"] == "too_short"
    return not (is_short and any(loc[: len(place)] == place for loc in inner))


def _in_words(found: Any, model: type[BaseModel], file: str | Path | None = None) -> ConfigError:
    location, broken = _location(found), found.get("ctx", {}).get("error")
    if isinstance(broken, RuleError):
        address = join_address(*location, broken.address)
        return ConfigError(
            broken.rule, address=address, value=broken.value, nearest=broken.nearest, file=file
        )
    rule, nearest = _problem(found, location, model)
    value = None if found["type"] == "missing" else found["input"]
    return ConfigError(
        rule, address=join_address(*location), value=value, nearest=nearest, file=file
    )


def _location(found: Any) -> list[str | int]:
    """Where a finding is: keys and indices; an unknown key may be spelled like a label."""
    known, unknown = found["loc"], ()
    if found["type"] == "extra_forbidden":
        known, unknown = known[:-1], known[-1:]
    return [*(part for part in known if not _is_union_label(part)), *unknown]


def _problem(found: Any, location: list[str | int], model: type[BaseModel]) -> tuple[str, Any]:
    """What is wrong in a finding, and the nearest valid name or value."""
    kind, value, context = found["type"], found["input"], found.get("ctx", {})
    if kind == "missing":
        return "is required", None
    if kind == "extra_forbidden":
        known = _fields_at(model, location[:-1])
        nearest = nearest_name(str(location[-1]), known)
        return "unknown key" if nearest else f"unknown key; known are {', '.join(known)}", nearest
    if (number := number_as_text(value)) is not None:
        is_whole = kind == "int_type" and number.is_integer()
        return NUMBER_AS_TEXT, str(int(number)) if is_whole else as_number(number)
    rule = _in_yaml_words(found["msg"])
    return f"is null and {rule}" if value is None else rule, _nearest(kind, value, context)


def _nearest(kind: str, value: Any, context: Mapping[str, Any]) -> Any:
    """The nearest of the named values, or the end of the range."""
    expected = context.get("expected")
    if kind == "literal_error" and isinstance(expected, str):
        return nearest_name(str(value), re.findall(r"'([^']*)'", expected))
    if kind in ("greater_than_equal", "less_than_equal"):
        return context.get("ge", context.get("le"))
    return None


def number_as_text(value: Any) -> float | None:
    """The number that `5e6` means, which YAML reads as text; None for all else."""
    if isinstance(value, str) and _NUMBER_AS_TEXT.fullmatch(value):
        number = float(value)
        return number if isfinite(number) else None
    return None


def as_number(number: float) -> str:
    """`number` spelled so that YAML reads it as one: with a point and a signed exponent."""
    digits, _, exponent = f"{number:e}".partition("e")
    digits = digits.rstrip("0")
    return f"{digits}{'0' if digits.endswith('.') else ''}e{int(exponent):+d}"


def _order(finding: Any) -> tuple[bool, bool, int]:
    """The key to sort findings by: unknown keys come first.

    If a value may have several types, there is a finding for each. The type that the value nearly
    has comes first: its finding is not about the type, or it is about an item inside.
    """
    kind, location = finding["type"], finding["loc"]
    is_other = kind.endswith("_type") and any(_is_union_label(part) for part in location)
    return kind != "extra_forbidden", is_other, -len(location) if is_other else 0


def _in_yaml_words(message: str) -> str:
    """pydantic's message without Python's names for things."""
    text = re.sub(r"^(Value error, |(Input|String|Tuple|Value) (?=should))", "", message)
    text = re.sub(r"a valid (tuple|list|array)", "a list", text)
    text = re.sub(r"'\w+' instances are not allowed as a Sequence value", "should be a list", text)
    text = re.sub(r"a valid dictionary( or instance of \w+)?", "a mapping of names to values", text)
    text = text.replace("a valid integer", "a whole number").replace("a valid number", "a number")
    text = text.replace("a valid string", "text").replace("a valid boolean", "true or false")
    return text.replace(" after validation", "")


def _is_union_label(part: str | int) -> bool:
    """pydantic puts the tried type of a union into the location: `int`, `tuple[int, int]`."""
    return isinstance(part, str) and (part in _UNION_LABELS or "[" in part)


def _fields_at(model: type[BaseModel], location: list[str | int]) -> list[str]:
    """The keys that the mapping at `location` may have."""
    current: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        field = getattr(current, "model_fields", {}).get(part)
        current = _model_inside(field.annotation) if field else None
    return [*getattr(current, "model_fields", {}), *getattr(current, "shorthand_keys", ())]


def _model_inside(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        found = _model_inside(argument)
        if found is not None:
            return found
    return None
