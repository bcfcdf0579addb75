"""Drawing one network from a parsed space: in what order, what is asked, what is on offer.

The order makes conditions known when they are needed: structure, mixers, groups, what depends on
them, then what belongs to the whole network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from vitnas.config import rules
from vitnas.config.axes import Axis, Choice, FloatRange, IntRange
from vitnas.config.checks import STAGE_MATTERS, broad_fits
from vitnas.config.mixers import MixerFacts, mixer_name, mixer_named
from vitnas.config.notation import Schedule, parse_schedule
from vitnas.errors import ConfigError


class Trial(Protocol):
    """The part of `optuna.trial.Trial` that a draw needs."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any: ...
    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int: ...
    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float: ...


class Refused(ConfigError):
    """A draw that is not a network: it breaks a rule that no single axis can see."""


def draw_tree(template: Any, trial: Trial) -> dict[str, Any]:
    """A model's tree with a value drawn from `trial` for every axis that matters.

    Raises:
        Refused: no option of an axis fits what has been drawn before.
    """
    draft = _Draft(template)
    drawn: dict[str, Any] = {}
    while draft.pending:
        axis = draft.pending.pop(0)
        if not _asked(axis, draft):
            draft.leave_out(axis)
            continue
        if axis.name not in drawn:
            drawn[axis.name] = _draw(axis, draft, trial)
        value = drawn[axis.name]
        draft.settle(axis, axis.options[value] if isinstance(axis, Choice) else value)
    return draft.tree


class _Stage:
    """A stage of a draft, as far as it is known."""

    def __init__(self, tree: Mapping[str, Any], groups: Sequence[int]) -> None:
        self.token_mixer = mixer_name(tree.get("token_mixer"))
        self.facts = mixer_named(self.token_mixer).facts if self.token_mixer else MixerFacts()
        self.depth = tree.get("depth", 1)
        self.embed_dim = tree.get("embed_dim", 0)
        self.heads = tree.get("num_heads") or self.embed_dim // (tree.get("head_dim") or 32)
        self.groups = groups


class _Draft:
    """A model tree in which axes are settled one by one."""

    def __init__(self, template: Any) -> None:
        self.tree: dict[str, Any] = {}
        self.pending: list[Axis] = []
        self._stages: list[_Stage] | None = None  # of the tree as it is
        self.tree = self._copy(template)
        self.pending.sort(key=_turn)

    def settle(self, axis: Axis, value: Any) -> None:
        """Put `value` in the axis's place; axes inside it wait for their turn."""
        self._stages = None
        holder = self._holder(axis)
        before = len(self.pending)
        holder[axis.path[-1]] = self._copy(value)
        if len(self.pending) > before:
            self.pending.sort(key=_turn)

    def leave_out(self, axis: Axis) -> None:
        """Let the field have its default."""
        self._stages = None
        del self._holder(axis)[axis.path[-1]]

    def stages(self) -> list[_Stage]:
        """The stages so far; unsettled fields read as their defaults."""
        if self._stages is None:
            self._stages = self._read_stages()
        return self._stages

    def _read_stages(self) -> list[_Stage]:
        stages = self.tree.get("stages")
        if not isinstance(stages, list):
            return []
        trees = [stage if isinstance(stage, dict) else {} for stage in stages]
        schedule = self.tree.get("groups")
        brackets = parse_schedule(schedule) if isinstance(schedule, str) else ()
        views = []
        for index, tree in enumerate(trees):
            known = {key: item for key, item in tree.items() if not isinstance(item, Axis)}
            groups = brackets[index] if index < len(brackets) else known.get("groups", (1,))
            if isinstance(groups, str):
                groups = parse_schedule(groups)[0]
            views.append(_Stage(known, groups))
        return views

    def num_tokens(self, stage: int) -> int:
        """Tokens N of a stage; 0 when the image size or stem does not allow for it."""
        size = self.tree.get("img_size", 224)
        height, width = (size, size) if isinstance(size, int) else size
        stride = self.tree.get("stem", {}).get("stride", 16) << stage
        return int(height // stride) * int(width // stride) + bool(self.tree.get("class_token"))

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


def _turn(axis: Axis) -> int:
    """When an axis is drawn: structure, mixers, groups, what depends on them, the whole network."""
    if axis.path[0] in ("reattention", "broad") and axis.field != "gamma":
        return 5
    if axis.field in _TURNS:
        return _TURNS[axis.field]
    if axis.stage is None or len(axis.path) == 2:
        return 0
    return 1 if axis.field in _FIRST else 3


def _asked(axis: Axis, draft: _Draft) -> bool:
    """Whether the value can make a difference to this draft's network."""
    if axis.stage is not None and axis.field in STAGE_MATTERS and len(axis.path) == 3:
        return STAGE_MATTERS[axis.field](draft.stages()[axis.stage])
    if axis.path == ("reattention_blocks",):
        return _reattention_limit(draft.stages()) > 0
    if axis.path == ("permute",):
        return any(number > 1 for stage in draft.stages() for number in stage.groups)
    if axis.path == ("broad", "gamma"):
        return broad_fits(draft.stages()) is None
    if axis.path[0] == "reattention":
        return bool(draft.tree.get("reattention_blocks"))
    if axis.path[0] == "broad" and len(axis.path) > 1:
        return bool(draft.tree["broad"].get("gamma"))
    return True


def _draw(axis: Axis, draft: _Draft, trial: Trial) -> Any:
    """A number of a range, or the index of a choice's option."""
    if isinstance(axis, Choice):
        return _draw_choice(axis, draft, trial)
    if isinstance(axis, IntRange):
        high = axis.high
        if axis.path == ("reattention_blocks",):
            limit = _reattention_limit(draft.stages())
            high = axis.low + (min(high, limit) - axis.low) // axis.step * axis.step
            if high < axis.low:
                rule = f"at most {limit} blocks of this network can have re-attention"
                raise Refused(rule, address=axis.name, value=axis.low)
        if axis.low == high:
            return axis.low
        return trial.suggest_int(axis.name, axis.low, high, step=axis.step, log=axis.log)
    assert isinstance(axis, FloatRange)
    return trial.suggest_float(axis.name, axis.low, axis.high, step=axis.step, log=axis.log)


def _draw_choice(axis: Choice, draft: _Draft, trial: Trial) -> int:
    """Draw among the options that fit.

    Optuna wants one set of categories a name, so a narrowed choice is a parameter of its own:
    `groups@0,1` is `groups` with options 0 and 1 on offer. One option left is not asked.
    """
    problems = [_misfit(axis, option, draft) for option in axis.options]
    fitting = [index for index, problem in enumerate(problems) if problem is None]
    if not fitting:
        rule = f"none of {len(problems)} options fits this network; the first: {problems[0]}"
        raise Refused(rule, address=axis.name, value=axis.options[0])
    if len(fitting) == 1:
        return fitting[0]
    name = axis.name
    if len(fitting) < len(axis.options):
        name += "@" + ",".join(map(str, fitting))
    labels = [axis.labels[index] for index in fitting]
    drawn = trial.suggest_categorical(name, labels)
    return fitting[labels.index(drawn)]


def _misfit(axis: Choice, option: Any, draft: _Draft) -> str | None:
    """Why an option cannot be drawn, as far as that is known before the network is whole."""
    if axis.path == ("groups",):
        return _schedule_misfit(parse_schedule(option), draft)
    if axis.path == ("reattention_blocks",):
        limit = _reattention_limit(draft.stages())
        return None if option <= limit else f"at most {limit} blocks can have re-attention"
    if axis.stage is None or len(axis.path) != 3:
        return None
    stage = draft.stages()[axis.stage]
    if axis.field in ("num_heads", "head_dim"):
        width = stage.embed_dim
        return f"{option} does not divide embed_dim {width}" if width % option else None
    if axis.field == "groups":
        groups = parse_schedule(option)[0] if isinstance(option, str) else option
        return rules.groups_fit(stage.token_mixer, draft.num_tokens(axis.stage), groups)
    return None


def _schedule_misfit(brackets: Schedule, draft: _Draft) -> str | None:
    stages = draft.stages()
    if len(brackets) != len(stages):
        return f"{len(brackets)} brackets for {len(stages)} stages"
    for index, (stage, groups) in enumerate(zip(stages, brackets, strict=True)):
        problem = rules.groups_fit(stage.token_mixer, draft.num_tokens(index), groups)
        if problem:
            return f"stages[{index}]: {problem}"
    return None


def _reattention_limit(stages: Sequence[_Stage]) -> int:
    return rules.reattention_limit([(s.token_mixer, s.depth, s.groups) for s in stages])
