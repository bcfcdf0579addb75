"""The grammar of searched values: `{choice: ...}`, `{int: [lo, hi]}`, `{float: [lo, hi]}`.

`parse_tree` turns every such mapping into an `Axis` and leaves the rest as it is. A choice may
offer whole mappings or lists, and these may hold axes of their own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from vitnas.config.axes import Axis, Choice, FloatRange, IntRange, Path
from vitnas.config.findings import NUMBER_AS_TEXT, as_number, number_as_text
from vitnas.errors import ConfigError, join_address, nearest_name

_MOST_ENTRIES = 1_000  # of a choice: every draw asks of each whether it fits
_LARGEST = 2.0**53  # whole numbers up to here are exact as floats, too
_RANGE_KEYS = frozenset({"step", "log", "name"})
_EXTRA_KEYS = {"choice": frozenset({"name", "labels"}), "int": _RANGE_KEYS, "float": _RANGE_KEYS}


def parse_tree(value: Any, path: Path = (), scope: str = "") -> Any:
    """A copy of `value` with an `Axis` in place of every searched value.

    Args:
        value: the parsed YAML below `model:`.
        path: where `value` will stand in the model's tree.
        scope: prefix of parameter names inside an option of a choice.

    Raises:
        ConfigError: an axis without entries, an empty range, an unknown key beside it.
    """
    if isinstance(value, Mapping):
        kind = next((key for key in _EXTRA_KEYS if key in value), None)
        if kind is not None:
            return _parse_axis(kind, value, path, scope)
        _refuse_misspelt_axis(value, path)
        return {key: parse_tree(item, (*path, key), scope) for key, item in value.items()}
    if isinstance(value, list):
        return [parse_tree(item, (*path, index), scope) for index, item in enumerate(value)]
    return value


def is_axis(value: Mapping[Any, Any]) -> bool:
    """Whether a mapping is a searched value."""
    return any(key in value for key in _EXTRA_KEYS)


def _refuse_misspelt_axis(value: Mapping[Any, Any], path: Path) -> None:
    """`{choise: [...]}` is a misspelt axis, not a model field of that name."""
    if len(value) == 1:
        key = str(next(iter(value)))
        nearest = get_close_matches(key, _EXTRA_KEYS, n=1, cutoff=0.75)
        if nearest:
            raise ConfigError("unknown key", address=join_address(*path, key), nearest=nearest[0])


def _parse_axis(kind: str, value: Mapping[str, Any], path: Path, scope: str) -> Axis:
    address = join_address(*path)
    for key in value:
        if key != kind and key not in _EXTRA_KEYS[kind]:
            nearest = nearest_name(str(key), _EXTRA_KEYS[kind])
            raise ConfigError(
                f"beside {kind} there may be {', '.join(sorted(_EXTRA_KEYS[kind]))}",
                address=join_address(*path, str(key)),
                value=value[key],
                nearest=nearest,
            )
    given = value.get("name")
    if given is not None and not (isinstance(given, str) and given):
        raise ConfigError("must be text", address=f"{address}.name", value=given)
    name = str(given or f"{scope}{address}")
    if kind == "choice":
        return _parse_choice(value["choice"], value.get("labels"), path, name, given is not None)
    return _parse_range(kind, value, path, name)


def _parse_choice(entries: Any, given: Any, path: Path, name: str, is_tied: bool) -> Choice:
    """A choice; in a tied one with labels, the rows of a table, entries may stand twice."""
    address = join_address(*path, "choice")
    if not isinstance(entries, list) or not entries:
        raise ConfigError(
            "a choice needs a list with one entry or more", address=address, value=entries
        )
    if len(entries) > _MOST_ENTRIES:
        rule = f"has {len(entries):,} entries; {_MOST_ENTRIES:,} are the most"
        raise ConfigError(rule, address=address, value=entries, nearest=_range_of(entries))
    labels = _labels(given, entries, path)
    for texts in [labels] if is_tied and given is not None else [entries, labels]:
        seen = set()
        for index, key in enumerate(map(_comparable, texts)):
            if key in seen:
                is_label = texts is labels and given is not None
                where = join_address(*path, "labels") if is_label else address
                value = labels[index] if is_label else entries[index]
                raise ConfigError("stands twice", address=f"{where}[{index}]", value=value)
            seen.add(key)
    options = tuple(
        parse_tree(entry, path, scope=f"{name}#{index}/") for index, entry in enumerate(entries)
    )
    return Choice(path, name, options, labels)


def _range_of(entries: list[Any]) -> str | None:
    """The range that has all entries, if these are whole numbers."""
    if not all(_is_number(entry, whole=True) for entry in entries):
        return None
    low, high = min(entries), max(entries)
    step = math.gcd(*(entry - low for entry in entries))
    return f"{{int: [{low}, {high}]{f', step: {step}' if step > 1 else ''}}}"


def _labels(given: Any, entries: list[Any], path: Path) -> tuple[Any, ...]:
    """The names that the file gives to the options, or what the options are."""
    if given is None:
        return tuple(_label(entry) for entry in entries)
    is_text = isinstance(given, list) and all(isinstance(label, str) for label in given)
    if not is_text or len(given) != len(entries):
        rule = f"labels are {len(entries)} texts, one for each option"
        raise ConfigError(rule, address=join_address(*path, "labels"), value=given)
    return tuple(given)


def _comparable(entry: Any) -> Any:
    """A hashable value; equal for entries that are equal in Python, as 1 and 1.0 are."""
    if isinstance(entry, dict):
        return frozenset((key, _comparable(value)) for key, value in entry.items())
    return tuple(map(_comparable, entry)) if isinstance(entry, list) else entry


def _label(entry: Any) -> Any:
    """What Optuna stores for an option: scalars as they are, anything else as JSON text."""
    if entry is None or isinstance(entry, (str, int, float, bool)):
        return entry
    return json.dumps(entry, sort_keys=True)


def _parse_range(kind: str, value: Mapping[str, Any], path: Path, name: str) -> Axis:
    whole = kind == "int"
    low, high = _ends(value[kind], join_address(*path, kind), whole)
    step, log = value.get("step"), value.get("log", False)
    if not isinstance(log, bool):
        raise ConfigError("must be true or false", address=join_address(*path, "log"), value=log)
    if step is not None and (not _is_number(step, whole) or step <= 0):
        raise ConfigError("must be above 0", address=join_address(*path, "step"), value=step)
    if log and (step is not None or low <= 0):
        rule = "a log range starts above 0 and has no step"
        raise ConfigError(rule, address=join_address(*path, "log"), value=log)
    if whole:
        size = step or 1
        return IntRange(path, name, low, low + (high - low) // size * size, size, log)
    if step is None:
        return FloatRange(path, name, float(low), float(high), None, log)
    top = low + math.floor((high - low) / step + 1e-9) * step
    top = high if math.isclose(top, high) else round(top, 12)  # as Optuna: low plus whole steps
    return FloatRange(path, name, float(low), float(top), float(step), log)


def _ends(ends: Any, address: str, whole: bool) -> tuple[Any, Any]:
    """The ends of a range.

    Raises:
        ConfigError: they are not two numbers in order.
    """
    if not isinstance(ends, list) or len(ends) != 2 or not all(_is_number(e, whole) for e in ends):
        for index, end in enumerate(ends if isinstance(ends, list) else ()):
            if (meant := number_as_text(end)) is not None:
                where = f"{address}[{index}]"
                near = as_number(meant)
                raise ConfigError(NUMBER_AS_TEXT, address=where, value=end, nearest=near)
        rule = f"a range is two {'whole' if whole else 'finite'} numbers [low, high]"
        raise ConfigError(rule, address=address, value=ends)
    low, high = ends
    if low > high:
        rule = "an empty range: low is above high"
        raise ConfigError(rule, address=address, value=ends, nearest=[high, low])
    return low, high


def check_ties(axes: Iterable[Axis]) -> None:
    """Axes of one name are one draw, so they must offer the same.

    Raises:
        ConfigError: two axes share a name but not their values.
    """
    first: dict[str, Axis] = {}
    for axis in axes:
        other = first.setdefault(axis.name, axis)
        if _offer(axis) != _offer(other):
            rule = f"must offer what {join_address(*other.path)} offers, which has the same name"
            raise ConfigError(rule, address=join_address(*axis.path, "name"), value=axis.name)


def _offer(axis: Axis) -> tuple[Any, ...]:
    """What an axis lets the sampler choose from."""
    if isinstance(axis, Choice):
        return ("choice", *axis.labels)
    assert isinstance(axis, (IntRange, FloatRange))
    return (type(axis).__name__, axis.low, axis.high, axis.step, axis.log)


def _is_number(value: Any, whole: bool) -> bool:
    """Whether it is a finite number of at most 2^53; true and false are no numbers."""
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        return False
    return abs(value) <= _LARGEST
