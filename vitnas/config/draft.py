"""A model tree in which axes are settled one by one, and the network as far as it is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import Any, TypeVar

from vitnas.config.axes import Axis, Choice, axes_in
from vitnas.config.matters import NETWORK_RULES, STAGE_RULES, FieldRule, rule_of
from vitnas.config.mixers import mixer_name
from vitnas.config.network import Network
from vitnas.config.notation import parse_schedule
from vitnas.config.parts import Frozen, StageConfig

_Part = TypeVar("_Part", bound=Frozen)


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
        self.pending.sort(key=_turn)
        self._network: Network | None = None  # made when somebody asks

    @property
    def network(self) -> Network:
        """What is known: a field that is not given has its default, one not settled is absent."""
        if self._network is None:
            self._network = _known_network(self.tree)
        return self._network

    def settle(self, axis: Axis, value: Any) -> None:
        """Put `value` in the axis's place; axes inside it become pending."""
        before = len(self.pending)
        self._holder(axis)[axis.path[-1]] = self._copy(value)
        if len(self.pending) > before:
            self.pending.sort(key=_turn)
        self._learn(axis, value)

    def leave_out(self, axis: Axis) -> None:
        """Let the field have its default, an item of a list the first value on offer."""
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
            AttributeError: not known yet.
        """
        found = rule_of(axis.path)
        if found is not None:
            rule, stage = found
            return rule.matters(self.network if stage is None else self.network.stages[stage])
        rules_inside = _rules_of_part(axis.path)
        if not rules_inside:
            return True
        part = str(axis.path[0])
        default = {part: Network.model_fields[part].default}
        as_default = _made(Network, self.network.__dict__ | default)
        return any(rule.matters(as_default) for rule in rules_inside)

    def meaning(self, axis: Axis, value: Any) -> Any:
        """What `value` stands for in the axis's place; see `FieldRule.meaning`.

        Raises:
            AttributeError: not known yet.
        """
        if axis.path == ("groups",):
            slices = STAGE_RULES["groups"].meaning
            pairs = zip(self.network.stages, parse_schedule(value), strict=False)
            return [slices(stage, groups, self.network) for stage, groups in pairs]
        found = rule_of(axis.path)
        if found is None:
            return value
        rule, stage = found
        holder: Any = self.network if stage is None else self.network.stages[stage]
        return rule.meaning(holder, _converted(axis.field, value), self.network)

    def _learn(self, axis: Axis, value: Any) -> None:
        """Bring `network` up to date: by the field alone where that is enough."""
        network = self._network
        if network is None:
            return
        if axis.path == ("groups",):
            _spread(network.stages, value)
        elif isinstance(value, (dict, list)) or len(axis.path) not in (1, 3):
            self._network = None
            return
        elif axis.stage is not None:
            _set(network.stages[axis.stage], axis.field, value)
        else:
            network.__dict__[axis.field] = value
        _forget_derived(network)

    def _holder(self, axis: Axis) -> Any:
        holder: Any = self.tree
        for part in axis.path[:-1]:
            holder = holder[part]
        return holder

    def _copy(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._copy(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._copy(item) for item in value]
        if isinstance(value, Axis):
            self.pending.append(value)
        return value


_TURNS = {"groups": 2, "reattention_blocks": 4, "gamma": 4, "permute": 4}
_FIRST = {"token_mixer", "depth", "embed_dim"}


def has_spellings(axis: Axis) -> bool:
    """Whether two values of the axis may stand for the same; see `Draft.meaning`."""
    if not isinstance(axis, Choice) or len(axis.options) == 1 or axis.has_numbers_alone:
        return False
    found = rule_of(axis.path)
    return axis.path == ("groups",) or (found is not None and found[0].has_spellings)


def _turn(axis: Axis) -> int:
    """When an axis is asked: structure, mixers, groups, what depends on them, the whole network."""
    if axis.path[0] in ("reattention", "broad") and axis.field != "gamma":
        return 5
    if axis.field in _TURNS:
        return _TURNS[axis.field]
    if axis.stage is None or len(axis.path) == 2:
        return 0
    return 1 if axis.field in _FIRST else 3


def _known_network(tree: Mapping[str, Any]) -> Network:
    """The network as far as the tree says it."""
    network = _known(Network, {name: tree[name] for name in tree if name != "stages"})
    stages, schedule = tree.get("stages"), tree.get("groups", "")
    if not isinstance(stages, list):
        return network
    network.__dict__["stages"] = tuple(
        _made(StageConfig, {}) if isinstance(stage, Axis) else _known(StageConfig, stage)
        for stage in stages
    )
    if isinstance(schedule, Axis):
        for stage in network.stages:
            stage.__dict__.pop("groups", None)
    elif schedule:
        _spread(network.stages, schedule)
    return network


def _spread(stages: Iterable[StageConfig], schedule: str) -> None:
    """Give each stage its bracket."""
    for stage, groups in zip(stages, parse_schedule(schedule), strict=False):
        stage.__dict__["groups"] = groups


def _known(model: type[_Part], tree: Mapping[str, Any]) -> _Part:
    """`model` with the settled fields of `tree`; nothing is checked."""
    values = dict(_defaults(model))
    for name, value in tree.items():
        default = values.get(name)
        if name == "token_mixer" and isinstance(value, dict):
            values[name] = mixer_name(value)
        elif isinstance(value, dict) and isinstance(default, Frozen):
            values[name] = _known(type(default), value)
        elif isinstance(value, Axis) or (isinstance(value, list) and any(axes_in(value))):
            values.pop(name, None)
        else:
            values[name] = _converted(name, value)
    return _made(model, values)


def _made(model: type[_Part], values: Mapping[str, Any]) -> _Part:
    """A `model` that has these fields alone."""
    made = model.__new__(model)
    made.__dict__.update(values)
    return made


def _set(stage: StageConfig, field: str, value: Any) -> None:
    """Settle a field of a draft's own stage."""
    stage.__dict__[field] = _converted(field, value)
    _forget_derived(stage)


def _forget_derived(part: Frozen) -> None:
    """Forget what was derived from the fields before one of them was settled."""
    for name in _derived(type(part)):
        part.__dict__.pop(name, None)


@cache
def _derived(model: type[Frozen]) -> tuple[str, ...]:
    return tuple(n for n in dir(model) if isinstance(getattr(model, n, None), cached_property))


@cache
def _defaults(model: type[Frozen]) -> dict[str, Any]:
    fields = model.model_fields.items()
    return {name: field.default for name, field in fields if not field.is_required()}


def _converted(field: str, value: Any) -> Any:
    """A value as a model holds it."""
    if field == "groups" and isinstance(value, str):
        return parse_schedule(value)[0]
    return tuple(value) if isinstance(value, list) else value


@cache
def _rules_of_part(path: tuple[str | int, ...]) -> tuple[FieldRule[Network], ...]:
    """The rules of all fields of a part such as `broad`; none where one field always matters."""
    part = _defaults(Network).get(str(path[0])) if len(path) == 1 else None
    if not isinstance(part, Frozen):
        return ()
    addresses = [f"{path[0]}.{name}" for name in type(part).model_fields]
    is_ruled = all(address in NETWORK_RULES for address in addresses)
    return tuple(NETWORK_RULES[address] for address in addresses) if is_ruled else ()
