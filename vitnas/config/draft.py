"""A model tree in which axes are settled one by one, and the network as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, TypeVar

from vitnas.config import rules
from vitnas.config.axes import Axis, Choice, axes_in
from vitnas.config.field_rule import FieldRule
from vitnas.config.matters import NETWORK_RULES, STAGE_RULES
from vitnas.config.mixers import mixer_name
from vitnas.config.network import Network
from vitnas.config.notation import Schedule, parse_schedule
from vitnas.config.parts import Frozen, NotSettled
from vitnas.config.pattern import MixerPattern
from vitnas.config.stage import StageConfig

_Part = TypeVar("_Part", bound=Frozen)
_TURN = attrgetter("turn")
_PLAIN = frozenset({str, int, float, bool, type(None)})


class Draft:
    """A model tree with axes in it.

    Args:
        template: the parsed tree of a space; it is copied.

    Attributes:
        tree: the tree as it is now.
        pending: axes that are not settled, in the order in which they take their turn.
    """

    def __init__(self, template: Any) -> None:
        self.pending: list[Axis] = []
        self.tree: dict[str, Any] = self._copy(template)
        self.pending.sort(key=_TURN)
        self._network: Network | None = None  # made when it is first needed
        self._meanings: tuple[Axis, list[Any]] | None = None  # of the last axis asked for

    @property
    def network(self) -> Network:
        """The network so far: a field that is not given has its default, an open one is absent."""
        if self._network is None:
            self._network = _known_network(self.tree)
        return self._network

    def settle(self, axis: Axis, value: Any) -> None:
        """Put `value` in the axis's place; axes inside it become pending."""
        before = len(self.pending)
        self._holder(axis)[axis.path[-1]] = self._copy(value)
        if len(self.pending) > before:
            self.pending.sort(key=_TURN)
        self._learn(axis, value)

    def leave_out(self, axis: Axis) -> None:
        """Give the field its default; an item of a list gets the first value on offer."""
        holder = self._holder(axis)
        if isinstance(holder, list):
            self.settle(axis, axis.first)
        else:
            del holder[axis.path[-1]]
            defaults = _defaults(Network if axis.stage is None else StageConfig)
            self._learn(axis, defaults.get(axis.field))

    def matters(self, axis: Axis) -> bool:
        """Whether the axis can make a difference to this network.

        Raises:
            NotSettled: not known yet.
        """
        if axis.rule is not None:
            return axis.rule.matters(self._part(axis))
        rules_inside = _rules_of_part(axis.path) if len(axis.path) == 1 else ()
        if not rules_inside:
            return True
        part = str(axis.path[0])
        default = {part: Network.model_fields[part].default}
        as_default = _made(Network, self.network.__dict__ | default)
        return any(rule.matters(as_default) for rule in rules_inside)

    def meaning(self, axis: Axis, value: Any) -> Any:
        """What `value` stands for in the axis's place; see `FieldRule.meaning`.

        Raises:
            NotSettled: not known yet.
        """
        if axis.path == ("groups",):
            network, slices = self.network, STAGE_RULES["groups"].meaning
            pairs = zip(network.stages, parse_schedule(value), strict=False)
            return [slices(stage, groups, network) for stage, groups in pairs]
        if isinstance(value, Choice):
            self._misfit(axis, value)  # it is on offer only if an option of its own fits
            return value
        if axis.rule is None or (isinstance(value, dict) and any(axes_in(value))):
            return value
        return axis.rule.meaning(self._part(axis), _converted(axis.field, value), self.network)

    def misfit(self, axis: Axis, value: Any) -> str | None:
        """Why `value` cannot be in the axis's place, as far as that is known; None if it can.

        A choice in its place fits if one of its own options does.
        """
        try:
            return self._misfit(axis, value)
        except NotSettled:
            return None

    def _misfit(self, axis: Axis, value: Any) -> str | None:
        if isinstance(value, Choice):
            problems = [self._misfit(value, option) for option in value.options]
            return None if None in problems else problems[0]
        if axis.path == ("groups",):
            return self._schedule_misfit(parse_schedule(value))
        if axis.rule is None or (axis.field != "token_mixer" and any(axes_in(value))):
            return None
        found = _converted(axis.field, value)
        return axis.rule.misfit(self._part(axis), found, self.network)

    def _schedule_misfit(self, brackets: Schedule) -> str | None:
        network, misfit = self.network, STAGE_RULES["groups"].misfit
        if len(brackets) != len(network.stages):
            return f"{len(brackets)} brackets for {len(network.stages)} stages"
        for index, groups in enumerate(brackets):
            problem = misfit(network.stages[index], groups, network)
            if problem:
                return f"stages[{index}]: {problem}"
        return None

    def meanings(self, axis: Choice) -> list[Any]:
        """What each option of the axis stands for.

        Raises:
            NotSettled: one of them is not known yet.
        """
        if self._meanings is None or self._meanings[0] is not axis:
            self._meanings = axis, [self.meaning(axis, option) for option in axis.options]
        return self._meanings[1]

    def _part(self, axis: Axis) -> Any:
        """The network or the stage that has the axis's field."""
        network = self._network or self.network
        return network if axis.stage is None else network.stages[axis.stage]

    def _learn(self, axis: Axis, value: Any) -> None:
        """Update `network`: its field if that is enough, else all of it when it is next needed."""
        self._meanings = None
        network = self._network
        if network is None:
            return
        if axis.path == ("groups",):
            _spread(network.stages, value)
        elif axis.is_schedule:
            stage = self._part(axis).__dict__
            stage.clear()
            stage.update(_known_stage(self.tree["stages"][axis.stage]).__dict__)
        elif isinstance(value, (dict, list, Axis)) or len(axis.path) not in (1, 3):
            self._network = None
        else:
            self._part(axis).__dict__[axis.field] = _converted(axis.field, value)

    def _holder(self, axis: Axis) -> Any:
        holder: Any = self.tree
        for part in axis.path[:-1]:
            holder = holder[part]
        return holder

    def _copy(self, value: Any) -> Any:
        if type(value) in _PLAIN:  # most values are plain, and a call takes long
            return value
        if isinstance(value, dict):
            return {k: v if type(v) in _PLAIN else self._copy(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._copy(item) for item in value]
        if isinstance(value, Axis):
            self.pending.append(value)
        return value


def _known_network(tree: Mapping[str, Any]) -> Network:
    """The network as far as the tree says it."""
    network = _known(Network, {name: tree[name] for name in tree if name != "stages"})
    stages, schedule = tree.get("stages"), tree.get("groups", "")
    if not isinstance(stages, list):
        return network
    network.__dict__["stages"] = tuple(map(_known_stage, stages))
    if isinstance(schedule, Axis):
        for stage in network.stages:
            stage.__dict__.pop("groups", None)
    elif schedule:
        _spread(network.stages, schedule)
    return network


def _known_stage(tree: Any) -> StageConfig:
    """A stage as far as its tree says it; groups are known when the passes are, too."""
    if isinstance(tree, Axis):
        return _made(StageConfig, {})
    stage = _known(StageConfig, tree)
    groups = stage.__dict__.pop("groups", None)
    if groups is not None and "passes" in stage.__dict__:
        stage.__dict__["groups"] = rules.schedule_of(groups, stage.passes)
    return stage


def _spread(stages: Iterable[StageConfig], schedule: str) -> None:
    """Give each stage its bracket."""
    for stage, groups in zip(stages, parse_schedule(schedule), strict=False):
        stage.__dict__["groups"] = groups


def _known(model: type[_Part], tree: Mapping[str, Any]) -> _Part:
    """`model` with the settled fields of `tree`; nothing is checked."""
    values = dict(_defaults(model))
    for name, value in tree.items():
        if isinstance(value, Axis) or (isinstance(value, list) and any(axes_in(value))):
            values.pop(name, None)
        elif name == "token_mixer" and isinstance(value, dict):
            values[name] = _known_pattern(value) if "pattern" in value else mixer_name(value)
        elif isinstance(value, dict) and isinstance(default := values.get(name), Frozen):
            values[name] = _known(type(default), value)
        else:
            values[name] = _converted(name, value)
    return _made(model, values)


def _known_pattern(tree: Mapping[str, Any]) -> MixerPattern:
    """A pattern as far as its tree says it: an open place in the list is None."""
    known = _known(MixerPattern, {name: tree[name] for name in tree if name != "pattern"})
    if isinstance(tree["pattern"], list):
        names = (None if isinstance(item, Axis) else item for item in tree["pattern"])
        known.__dict__["pattern"] = tuple(names)
    return known


def _made(model: type[_Part], values: Mapping[str, Any]) -> _Part:
    """A `model` that has these fields alone; reading another one raises NotSettled."""
    made: _Part = object.__new__(_in_part(model))
    made.__dict__.update(values)
    return made


@cache
def _in_part(model: type[_Part]) -> type[_Part]:
    """A subclass of `model` whose fields may be absent; it computes cached properties anew.

    One wrapper around any part would be shorter, but it draws a third fewer networks a second.
    """

    class Known(model, defer_build=True):  # type: ignore[call-arg, misc, valid-type]
        def __getattr__(self, name: str) -> Any:
            raise NotSettled(name) if name in model.model_fields else AttributeError(name)

    for name, value in vars(model).items():
        if isinstance(value, cached_property):
            setattr(Known, name, property(value.func))
    return Known


@cache
def _defaults(model: type[Frozen]) -> dict[str, Any]:
    fields = model.model_fields.items()
    return {name: field.default for name, field in fields if not field.is_required()}


def _converted(field: str, value: Any) -> Any:
    """A value as a model holds it."""
    if field == "groups" and isinstance(value, str):
        return parse_schedule(value)[0]
    if field == "token_mixer" and isinstance(value, dict) and "pattern" in value:
        return _known_pattern(value)
    return tuple(value) if isinstance(value, list) else value


@cache
def _rules_of_part(path: tuple[str | int, ...]) -> tuple[FieldRule[Network], ...]:
    """The rules of all fields of a part such as `broad`; empty if one of them always matters."""
    part = _defaults(Network).get(str(path[0]))
    if not isinstance(part, Frozen):
        return ()
    addresses = [f"{path[0]}.{name}" for name in type(part).model_fields]
    is_ruled = all(address in NETWORK_RULES for address in addresses)
    return tuple(NETWORK_RULES[address] for address in addresses) if is_ruled else ()
