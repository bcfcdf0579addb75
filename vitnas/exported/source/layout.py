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

    @property
    def over(self) -> str:
        """What the variable goes through."""
        return f"range({self.start}, {self.stop})" if self.start else f"range({self.stop})"


@dataclass(frozen=True)
class Through:
    """`*[item for variable in over]`."""

    item: Call
    variable: str
    over: str


@dataclass(frozen=True)
class Listed:
    """`[item, item]`, or a comprehension where it is of one `Repeat` or `Through` alone."""

    items: tuple[Any, ...]


POSITIONAL = {
    "dim",
    "before",
    "after",
    "mixer",
    "residual",
    "block",
    "downsample",
    "position",
}
STARRED = {"blocks", "nlls", "layers"}
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
    elif isinstance(value, Listed):
        yield from calls(value.items)
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
    if isinstance(value, Listed):
        return Listed(changed(value.items, change))
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

    Items of a list stand on one line each.

    Args:
        value: a `Call`, a `Repeat`, a `Listed` or a plain value.
        indent: spaces in front of each line.
        before, after: what stands on its first and on its last line, too.
    """
    margin = " " * indent
    whole = f"{margin}{before}{flat(value)}{after}"
    if len(whole) <= WIDTH or not isinstance(value, (Call, Repeat, Through, Listed)):
        return [whole]
    inside = [f"{margin}    {_inside(value)}"]
    turns = _turns(value)
    fits = len(inside[0]) <= WIDTH
    if turns and not fits:
        inside = printed(turns.item, indent + 4)
        inside.append(f"{margin}    for {turns.variable} in {turns.over}")
    elif not fits or (isinstance(value, Listed) and not turns):
        arguments = _arguments(value)
        inside = [line for key, item in arguments for line in printed(item, indent + 4, key, ",")]
    first, last = (f"{value.name}(", ")") if isinstance(value, Call) else ("[", "]")
    star = "*" * isinstance(value, (Repeat, Through))
    return [f"{margin}{before}{star}{first}", *inside, f"{margin}{last}{after}"]


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


def flat(value: Any) -> str:
    """An expression on one line."""
    if isinstance(value, (Repeat, Through)):
        return f"*[{_inside(value)}]"
    if isinstance(value, Listed):
        return f"[{_inside(value)}]"
    if isinstance(value, Call):
        return f"{value.name}({_inside(value)})"
    return literal(value)


def _turns(value: Any) -> Repeat | Through | None:
    """What a comprehension goes through, if the expression is one."""
    if isinstance(value, Listed) and len(value.items) == 1:
        value = value.items[0]
    return value if isinstance(value, (Repeat, Through)) else None


def _inside(value: Any) -> str:
    """What is between the brackets, on one line."""
    turns = _turns(value)
    if turns:
        return f"{flat(turns.item)} for {turns.variable} in {turns.over}"
    return ", ".join(key + flat(item) for key, item in _arguments(value))


def _arguments(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Listed):
        yield from (("", item) for item in value.items)
        return
    for key, item in value.args:
        if key in STARRED and isinstance(item, tuple):
            yield from (("", one) for one in item)
        else:
            is_keyed = value.name in KEYED or key not in POSITIONAL
            yield f"{key}=" if is_keyed else "", item


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


def is_starred(name: str, kind: str) -> bool:
    """Whether a parameter of this type takes any number of arguments."""
    return name in STARRED and not kind.startswith("Sequence[")


def signature(types: Mapping[str, str]) -> str:
    """The first lines of an `__init__` with these parameters and their types."""
    given = [f"{'*' * is_starred(name, kind)}{name}: {kind}" for name, kind in types.items()]
    parameters = ["self", *given]
    line = f"    def __init__({', '.join(parameters)}) -> None:"
    if len(line) <= WIDTH:
        return line
    inside = f"        {', '.join(parameters)}"
    if len(inside) > WIDTH:
        inside = ",\n".join(f"        {parameter}" for parameter in parameters) + ","
    return f"    def __init__(\n{inside}\n    ) -> None:"
