"""The searched values of a space: what each offers, when it is asked, and where its value goes.

`grammar` reads them from a space file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vitnas.config.field_rule import FieldRule
from vitnas.config.matters import rule_of

Path = tuple[str | int, ...]

_TURNS = {
    **dict.fromkeys(("blocks", "passes", "groups"), 2),
    **dict.fromkeys(("reattention_blocks", "gamma", "permute", "permute_inverse"), 4),
}
_FIRST = {"token_mixer", "pattern", "last", "depth", "embed_dim"}


@dataclass(frozen=True)
class Axis:
    """One searched value.

    Attributes:
        path: where its value goes in the model's tree.
        name: Optuna's parameter name: the address, or the `name` given in the file, which ties
            all axes of that name to one draw.
    """

    path: Path
    name: str

    @cached_property
    def field(self) -> str:
        """The last name in the path, e.g. `groups` of `stages[2].groups`."""
        return next((part for part in reversed(self.path) if isinstance(part, str)), "")

    @cached_property
    def stage(self) -> int | None:
        """The stage that the axis belongs to, or None for the network's own."""
        if len(self.path) > 1 and self.path[0] == "stages" and isinstance(self.path[1], int):
            return self.path[1]
        return None

    @cached_property
    def rule(self) -> FieldRule[Any] | None:
        """When the field matters and what its values mean; None where it always matters."""
        return rule_of(self.path)

    @cached_property
    def is_schedule(self) -> bool:
        """Whether it says the passes of a stage, or the groups in them."""
        return self.stage is not None and self.field in ("passes", "groups")

    @cached_property
    def must_fit(self) -> bool:
        """Whether some values may not fit; see `FieldRule.misfit`."""
        return self.path == ("groups",) or (self.rule is not None and self.rule.may_misfit)

    @cached_property
    def turn(self) -> int:
        """Its place among the questions: structure first, then mixers, groups, the rest."""
        if self.path[0] in ("reattention", "broad") and self.field != "gamma":
            return 5
        if self.field in _TURNS:
            return _TURNS[self.field]
        if self.stage is None or len(self.path) == 2:
            return 0
        return 1 if self.field in _FIRST else 3

    @property
    def first(self) -> Any:
        """The first value on offer."""
        raise NotImplementedError


@dataclass(frozen=True)
class Choice(Axis):
    """`{choice: [...]}`; `labels` are what Optuna stores, one an option, all different."""

    options: tuple[Any, ...]
    labels: tuple[Any, ...]

    @cached_property
    def may_repeat(self) -> bool:
        """Whether two options may mean the same; see `FieldRule.meaning`."""
        if len(self.options) == 1:
            return False
        is_schedule = self.path == ("groups",)
        return is_schedule or (self.rule is not None and self.rule.may_repeat(self.options))

    @property
    def first(self) -> Any:
        return self.options[0]


@dataclass(frozen=True)
class IntRange(Axis):
    """`{int: [low, high]}`, both ends included; `step` and `log` as in Optuna."""

    low: int
    high: int
    step: int = 1
    log: bool = False

    @property
    def first(self) -> int:
        return self.low


@dataclass(frozen=True)
class FloatRange(Axis):
    """`{float: [low, high]}`, both ends included; `step` and `log` as in Optuna."""

    low: float
    high: float
    step: float | None = None
    log: bool = False

    @property
    def first(self) -> float:
        return self.low


def axes_in(tree: Any) -> Iterator[Axis]:
    """The axes of a parsed tree in the file's order; not those inside options."""
    if isinstance(tree, Axis):
        yield tree
    elif isinstance(tree, dict):
        for item in tree.values():
            yield from axes_in(item)
    elif isinstance(tree, list):
        for item in tree:
            yield from axes_in(item)


def all_axes(tree: Any) -> Iterator[Axis]:
    """The axes of a parsed tree in the file's order, those inside options included."""
    for axis in axes_in(tree):
        yield axis
        if isinstance(axis, Choice):
            for option in axis.options:
                yield from all_axes(option)


def probes(template: Any) -> Iterator[dict[str, Any]]:
    """Trees that between them show every option and both ends of every range once."""
    yield _first_values(template, None, None)
    for axis in all_axes(template):
        if isinstance(axis, Choice):
            for option in axis.options:
                yield _first_values(template, axis, option)
        elif isinstance(axis, (IntRange, FloatRange)):
            for end in (axis.low, axis.high):
                yield _first_values(template, axis, end)


def _first_values(tree: Any, chosen: Axis | None, value: Any) -> Any:
    """`tree` with `value` for the axis `chosen` and the first value for every other."""
    if isinstance(tree, Choice):
        if tree is chosen:
            return _first_values(value, None, None)
        holding = [o for o in tree.options if chosen is not None and chosen in all_axes(o)]
        return _first_values(holding[0] if holding else tree.options[0], chosen, value)
    if isinstance(tree, (IntRange, FloatRange)):
        return value if tree is chosen else tree.low
    if isinstance(tree, dict):
        return {key: _first_values(item, chosen, value) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_first_values(item, chosen, value) for item in tree]
    return tree
