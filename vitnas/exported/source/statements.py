"""Assignments of model.py: what does not fit on a line gets variables for its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from vitnas.exported.source.layout import (
    STARRED,
    Call,
    Code,
    Listed,
    Repeat,
    Through,
    flat,
    printed,
)

_INDENT = 8  # of a method
_HEADS = ("nn.Conv2d(", "nn.Linear(")  # each begins a statement of its own in a list of layers


@dataclass(frozen=True)
class Assignment:
    """`name = value`, or `name += value`."""

    name: str
    value: Any
    adds: bool = False

    def lines(self, note: str = "") -> list[str]:
        """Its text; `note` is the type of a variable."""
        before = f"{self.name}{note} {'+' * self.adds}= "
        return printed(self.value, _INDENT, before)


@dataclass(frozen=True)
class _Part:
    """A part of an expression that can be a variable: where it is, by keys, and what."""

    keys: tuple[str, ...]
    value: Any

    def variable(self) -> Any:
        """What stands in its place."""
        name = self.keys[-1]
        return (Code(f"*{name}"),) if isinstance(self.value, tuple) else Code(name)

    def assigned(self) -> list[Assignment]:
        name = self.keys[-1]
        value = Listed(self.value) if isinstance(self.value, tuple) else self.value
        return assigned(name, value)


def assigned(name: str, value: Any) -> list[Assignment]:
    """The assignments of a value, its parts before it; as few lines as can be.

    Parts become variables from the longest on. Those inside of a loop cannot.
    """
    best = _as_list(name, value)
    taken: list[_Part] = []
    parts = list(_parts(value))
    for part in sorted(parts, key=lambda one: -len(_text(one.value))):
        taken.append(part)
        value = _with(value, part.keys, part.variable())
        before = [line for one in parts if one in taken for line in one.assigned()]
        found = [*before, Assignment(name, value)]
        best = min(best, found, key=_height)
    return best


def statements(*parts: Sequence[Assignment]) -> list[list[str]]:
    """The lines of each part of a method.

    A variable that has values of several types gets the common one where it is first assigned.
    """
    types: dict[str, set[str]] = {}
    for one in chain(*parts):
        if not one.adds:
            types.setdefault(one.name, set()).add(_type(one.value))
    several = {name for name, found in types.items() if len(found) > 1}
    lines = []
    for part in parts:
        lines.append(list[str]())
        for one in part:
            common = "list[nn.Module]" if isinstance(one.value, Listed) else "nn.Module"
            lines[-1] += one.lines(f": {common}" if one.name in several else "")
            several.discard(one.name)
    return lines


def _as_list(name: str, value: Any) -> list[Assignment]:
    """One assignment; of a list that is too long, its layers step by step or its mixers before."""
    whole = [Assignment(name, value)]
    if not isinstance(value, Listed) or _height(whole) == 1:
        return whole
    if name == "layers":
        return _by_step(name, value)
    return min(whole, _by_mixer(name, value) or whole, key=_height)


def _by_step(name: str, value: Listed) -> list[Assignment]:
    """A list that grows by as many layers as fit on a line, with a convolution as the first."""
    steps = list[Assignment]()
    for item in value.items:
        longer = Listed((*steps[-1].value.items, item) if steps else (item,))
        found = Assignment(name, longer, adds=len(steps) > 1)
        if steps and not str(item).startswith(_HEADS) and _height([found]) == 1:
            steps[-1] = found
        else:
            steps.append(Assignment(name, Listed((item,)), adds=bool(steps)))
    return steps


def _by_mixer(name: str, value: Listed) -> list[Assignment]:
    """A list of blocks that differ in nothing but their mixers; nothing where they do."""
    mixers, around = list[Any](), set[Any]()
    for item in value.items:
        block = item.item if isinstance(item, Repeat) else item
        found = _mixer(block)
        if found is None:
            return []
        keys, mixer = found
        if isinstance(item, Repeat):
            mixers.append(Repeat(mixer, item.variable, item.start, item.stop))
        else:
            mixers.append(mixer)
        around.add(_with(block, keys, Code("mixer")))
    if len(around) > 1 or len(mixers) == 1:
        return []
    blocks = Listed((Through(around.pop(), "mixer", "mixers"),))
    return [Assignment("mixers", Listed(tuple(mixers))), Assignment(name, blocks)]


def _height(assignments: Sequence[Assignment]) -> int:
    return sum(len(one.lines()) for one in assignments)


def _text(value: Any) -> str:
    return flat(Listed(value) if isinstance(value, tuple) else value)


def _type(value: Any) -> str:
    """A text that is the same for values of the same type."""
    if isinstance(value, Listed):
        items = (one.item if isinstance(one, (Repeat, Through)) else one for one in value.items)
        names = sorted({_type(item) for item in items})
        is_any = len(names) > 1 and names[-1].startswith("nn.")  # as mypy finds for torch's layers
        return f"list[{'nn.Module' if is_any else ' | '.join(names)}]"
    return value.name if isinstance(value, Call) else str(value).split("(")[0]


def _parts(value: Any, keys: tuple[str, ...] = ()) -> Iterator[_Part]:
    """The arguments that can be variables, also those of calls around blocks or layers."""
    for key, item in value.args if isinstance(value, Call) else ():
        here = (*keys, key)
        only = _only(item)
        if only and (key in STARRED or {name for name, _ in only.args} <= STARRED):
            yield from _parts(only, here)
        elif _is_part(key, item):
            yield _Part(here, item)


def _is_part(key: str, item: Any) -> bool:
    if isinstance(item, tuple):
        return key in STARRED
    return isinstance(item, (Call, Listed)) or (isinstance(item, Code) and "(" in item)


def _only(value: Any) -> Call | None:
    """A call, also where it is the only one of a tuple."""
    if type(value) is tuple and len(value) == 1:
        value = value[0]
    return value if isinstance(value, Call) else None


def _mixer(value: Any, keys: tuple[str, ...] = ()) -> tuple[tuple[str, ...], Call] | None:
    """The mixer of a block, and where it is."""
    for key, item in value.args if isinstance(value, Call) else ():
        only = _only(item)
        if only and key == "mixer":
            return (*keys, key), only
        found = _mixer(only, (*keys, key))
        if found:
            return found
    return None


def _with(value: Any, keys: tuple[str, ...], new: Any) -> Any:
    """The value with another part."""
    if not keys:
        return new
    if type(value) is tuple:
        return (_with(value[0], keys, new),)
    key, *rest = keys
    changed = tuple((k, _with(v, tuple(rest), new) if k == key else v) for k, v in value.args)
    return Call(value.name, changed)
