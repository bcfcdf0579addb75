"""Finds a network in a space: the answers to a draw's questions that give this network.

Classes, channels, image size and drop rates are taken from the space: they belong to the data or to
the training, not to the architecture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vitnas.config.axes import Axis, Choice
from vitnas.config.differences import differences
from vitnas.config.model import ModelConfig
from vitnas.config.notation import parse_schedule
from vitnas.config.rules import schedule_of
from vitnas.config.space import SearchSpace
from vitnas.config.trials import PositionTrial, Refused, Trial, every
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.errors import ConfigError

_TRIES = 300
_FREE = (
    *("img_size", "in_chans", "num_classes"),
    *("drop_rate", "pos_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate"),
)


@dataclass(frozen=True)
class Candidate:
    """A network that the space can draw.

    Attributes:
        origin: where it comes from, for reports.
        params: the answer to every question of the draw, by Optuna's names.
        key: of its configuration.
    """

    origin: str
    params: Mapping[str, Any]
    key: str


def locate(space: SearchSpace, config: ModelConfig, origin: str) -> Candidate:
    """How `space` draws the network `config`.

    Args:
        space: the space.
        config: the network; its classes, channels, image size and drop rates are left aside.
        origin: the candidate's.

    Raises:
        ConfigError: the space has no such network, or it is outside the limits; with what differs
            in the nearest one found.
    """
    wanted = _with_rates_of(space, config)
    view, aim = _view(wanted), _tree(wanted)
    guided = every(lambda trial: _drawn(space, trial), lambda at: _GuidedTrial(at, space, view))
    least: list[str] | None = None
    for drawn, params in islice(guided, _TRIES):
        missing = list(differences(_tree(drawn), aim))
        if not missing:
            problem = over_limits(closed_form(drawn), space.config.limits)
            if problem:
                raise ConfigError(problem, file=origin)
            return Candidate(origin, params, drawn.key)
        if least is None or len(missing) < len(least):
            least = missing
    reason = least[0] if least else "none of its draws is a network"
    raise ConfigError(f"is not in the space {space.name}: {reason}", file=origin)


def locate_by(space: SearchSpace, answers: Mapping[str, Any], origin: str) -> Candidate | None:
    """The network that `space` draws with `answers`, if they answer exactly its questions."""
    with contextlib.suppress(Refused, LookupError):
        drawn, params = _drawn(space, _SameTrial(answers))
        if not over_limits(closed_form(drawn), space.config.limits):
            return Candidate(origin, params, drawn.key)
    return None


class _SameTrial:
    """Gives the answers of another trial; `LookupError` for a question that it was not asked."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.params: dict[str, Any] = {}

    def _same(self, name: str, fits: bool) -> Any:
        if not fits:
            raise LookupError(name)
        self.params[name] = self._answers[name]
        return self.params[name]

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        return self._same(name, self._answers[name] in choices)

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        value = self._answers[name]
        return int(self._same(name, low <= value <= high and (value - low) % step == 0))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        return float(self._same(name, low <= self._answers[name] <= high))


class _GuidedTrial(PositionTrial):
    """Answers with the values of a network; where those leave a choice open, by position.

    Once a question has no answer that leads to the network, no later choice is left open.
    """

    def __init__(
        self, positions: Sequence[int], space: SearchSpace, view: Mapping[str, Any]
    ) -> None:
        super().__init__(positions)
        self._axes = {axis.name: axis for axis in space.axes}
        self._view = view
        self._is_lost = False
        self.params: dict[str, Any] = {}

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        axis = self._axes.get(name) or self._axes[name.rpartition("@")[0]]
        assert isinstance(axis, Choice)
        value = _at(self._view, axis)
        offered = [label for label in choices if _may_be(axis, label, value)]
        self._is_lost |= not offered
        offered = offered or list(choices)
        self.params[name] = offered[0 if self._is_lost else self._turn(len(offered))]
        return self.params[name]

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        value = _at(self._view, self._axes[name])
        fits = isinstance(value, int) and low <= value <= high and (value - low) % step == 0
        self._is_lost |= not fits
        self.params[name] = value if fits else low
        return int(self.params[name])

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        value = _at(self._view, self._axes[name])
        fits = isinstance(value, (int, float)) and low <= value <= high
        self._is_lost |= not fits
        self.params[name] = float(value) if fits else low
        return float(self.params[name])


def _may_be(axis: Choice, label: Any, value: Any) -> bool:
    """Whether an option may lead to `value`; yes where only the whole network can tell."""
    option = axis.options[axis.labels.index(label)]
    parts = option if isinstance(option, list) else [option]
    has_parts = any(isinstance(part, (dict, Axis)) for part in parts)
    if axis.path == ("stages",) and isinstance(option, list):
        return len(option) == len(value)
    is_shared = axis.stage is None and axis.field == "residual"  # stages may have their own
    is_respelled = axis.path == ("broad", "layers")  # `every:2` of two layers is `last:1`
    if value is None or option is None or is_shared or is_respelled or has_parts:
        return True
    if axis.field == "groups":
        option = _schedule(axis, option, value)
    return bool(_plain(option) == _plain(value))


def _schedule(axis: Choice, option: Any, value: Sequence[Any]) -> Any:
    """An option of `groups` with as many passes as `value` has."""
    schedule = parse_schedule(option) if isinstance(option, str) else (option,)
    return schedule if axis.path == ("groups",) else schedule_of(schedule[0], len(value))


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _at(view: Any, axis: Axis) -> Any:
    """What the network has at the axis's place; None where it has nothing there."""
    for part in axis.path:
        try:
            view = view[part]
        except (LookupError, TypeError):
            return None
    return view


def _view(config: ModelConfig) -> dict[str, Any]:
    """The network's tree, nothing left to defaults, with what axes may ask for in other words."""
    canonical = config.canonical()
    tree = canonical.model_dump(mode="json")
    for stage, known in zip(tree["stages"], canonical.stages, strict=True):
        stage["passes"] = known.passes
        stage["expansion"] = known.expansion or known.facts.expansion or None
        if known.heads:
            stage["num_heads"], stage["head_dim"] = known.heads, known.attn_width // known.heads
            stage["attn_dim"] = known.attn_dim or None
    tree["groups"] = [stage["groups"] for stage in tree["stages"]]
    return tree


def _with_rates_of(space: SearchSpace, config: ModelConfig) -> ModelConfig:
    """The network with the space's classes, channels, image size and drop rates."""
    free = {
        name: space.template.get(name, ModelConfig.model_fields[name].default) for name in _FREE
    }
    given = {name: value for name, value in free.items() if not isinstance(value, Axis)}
    try:
        return ModelConfig.model_validate({**config.model_dump(mode="json"), **given})
    except ValueError:  # e.g. groups that do not divide the tokens of this image size
        return config


def _drawn(space: SearchSpace, trial: _SameTrial | Trial) -> tuple[ModelConfig, dict[str, Any]]:
    config = space.suggest(trial)
    return config, dict(getattr(trial, "params", {}))


def _tree(config: ModelConfig) -> dict[str, Any]:
    """What a network is, for `differences`."""
    return config.canonical().model_dump(mode="json", exclude={"name"})
