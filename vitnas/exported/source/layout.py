"""Python expressions as ruff formats them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

WIDTH = 88
"""Characters of a line: the default of ruff and black."""


class Code(str):
    """Text of a program, printed as it is."""


@dataclass(frozen=True)
class Call:
    """`name(1, key=2)`.

    Attributes:
        name: what is called; a `Variant` until it has its name.
        args: values by parameter. Those in `POSITIONAL` are printed without their name, and a
            tuple of `STARRED` as arguments of their own. `KEYED` get all others by their names.
    """

    name: Any
    args: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Repeat:
    """`*[item for variable in range(start, stop)]`."""

    item: Call
    variable: str
    start: int
    stop: int


_FEW = 3
POSITIONAL = {
    "dim",
    "before",
    "after",
    "mixer",
    "block",
    "downsample",
    "position",
}
STARRED = {"blocks", "nlls"}
KEYED = {"named", "stage"}


def call(name: Any, args: Mapping[str, Any]) -> Call:
    """A call with these arguments, in this order."""
    return Call(name, tuple(args.items()))


def calls(value: Any) -> Iterator[Call]:
    """All calls inside of a value, outer ones first."""
    if isinstance(value, Repeat):
        yield from calls(value.item)
    elif isinstance(value, Call):
        yield value
        for _, item in value.args:
            yield from calls(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from calls(item)


def changed(value: Any, change: Callable[[Call], Call]) -> Any:
    """The value, where `change` was made to each call, inner ones first."""
    if isinstance(value, Repeat):
        return Repeat(changed(value.item, change), value.variable, value.start, value.stop)
    if isinstance(value, Call):
        return change(
            Call(value.name, tuple((key, changed(item, change)) for key, item in value.args))
        )
    if type(value) is tuple:
        return tuple(changed(item, change) for item in value)
    return value


def literal(value: Any) -> str:
    """A value as it stands in a program: `1e-6`, `(8, 2)`."""
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, tuple):
        inside = ", ".join(map(literal, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return repr(value).replace("e-0", "e-")


def printed(value: Any, indent: int, before: str = "", after: str = "") -> list[str]:
    """Lines of an expression: one if it fits, else its arguments on one line or on one each.

    Args:
        value: a `Call`, a `Repeat` or a plain value.
        indent: spaces in front of each line.
        before, after: what stands on its first and on its last line, too.
    """
    whole = f"{' ' * indent}{before}{_flat(value)}{after}"
    if len(whole) <= WIDTH or not isinstance(value, (Call, Repeat)):
        return [whole]
    margin = " " * indent
    if isinstance(value, Repeat):
        turns = f"{margin}    for {value.variable} in {_range(value)}"
        inside = [*printed(value.item, indent + 4), turns]
        return [f"{margin}{before}*[", *inside, f"{margin}]{after}"]
    inside = [f"{margin}    {_inside(value)}"]
    if len(inside[0]) > WIDTH:
        inside = [
            line for key, item in _arguments(value) for line in _listed(item, indent + 4, key)
        ]
    return [f"{margin}{before}{value.name}(", *inside, f"{margin}){after}"]


def _listed(value: Any, indent: int, key: str) -> list[str]:
    """Lines of an argument; few equal ones of one line each stand one below the other."""
    if isinstance(value, Repeat) and value.variable == "_" and value.stop <= _FEW:
        lines = printed(value.item, indent, key, ",")
        if len(lines) == 1:
            return lines * value.stop
    return printed(value, indent, key, ",")


def wrapped(line: str) -> str:
    """A line of code; if it is too long, what is inside its last brackets has its own lines."""
    if len(line) <= WIDTH or line[-1] not in "])":
        return line
    depth, start = 0, len(line)
    while depth or start == len(line):
        start -= 1
        depth += (line[start] in "])") - (line[start] in "[(")
    margin = " " * (len(line) - len(line.lstrip()))
    inside = f"{margin}    {line[start + 1 : -1]}"
    return f"{line[: start + 1]}\n{inside}\n{margin}{line[-1]}"


def _flat(value: Any) -> str:
    if isinstance(value, Repeat):
        return f"*[{_flat(value.item)} for {value.variable} in {_range(value)}]"
    if isinstance(value, Call):
        return f"{value.name}({_inside(value)})"
    return literal(value)


def _inside(value: Call) -> str:
    return ", ".join(key + _flat(item) for key, item in _arguments(value))


def _arguments(value: Call) -> Iterator[tuple[str, Any]]:
    for key, item in value.args:
        if key in STARRED and isinstance(item, tuple):
            yield from (("", one) for one in item)
        else:
            is_keyed = value.name in KEYED or key not in POSITIONAL
            yield f"{key}=" if is_keyed else "", item


def _range(value: Repeat) -> str:
    start = f"{value.start}, " if value.start else ""
    return f"range({start}{value.stop})"


def definition(name: str, types: Mapping[str, str], returns: str) -> str:
    """The first lines of a function."""
    parameters = [f"{key}: {kind}" for key, kind in types.items()]
    line = f"def {name}({', '.join(parameters)}) -> {returns}:"
    if len(line) <= WIDTH:
        return line
    inside = f"    {', '.join(parameters)}"
    if len(inside) > WIDTH:
        inside = ",\n".join(f"    {parameter}" for parameter in parameters) + ","
    return f"def {name}(\n{inside}\n) -> {returns}:"


def signature(types: Mapping[str, str]) -> str:
    """The first lines of an `__init__` with these parameters and their types."""
    given = [f"{'*' * (name in STARRED)}{name}: {kind}" for name, kind in types.items()]
    parameters = ["self", *given]
    line = f"    def __init__({', '.join(parameters)}) -> None:"
    if len(line) <= WIDTH:
        return line
    inside = f"        {', '.join(parameters)}"
    if len(inside) > WIDTH:
        inside = ",\n".join(f"        {parameter}" for parameter in parameters) + ","
    return f"    def __init__(\n{inside}\n    ) -> None:"
