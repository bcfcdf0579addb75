"""What each choice buys at like FLOPs: the axes of a space, judged around the front of a run.

One answer of a front member is changed at a time. The model that gives expected top-1 says what
that does to the log-odds (`surrogate.contrasts`). The changed network has other FLOPs; what these
are worth is taken off: effect = f(changed) - b log2 FLOPs(changed), with b the slope of f in log2
FLOPs, all else equal. It is the mean over the members, against the mean of the axis's values.

Where no member of the front can have all values of an axis, matched pairs judge it (`matched`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import log
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from vitnas.config.axes import Axis, Choice, IntRange
from vitnas.config.files import validate
from vitnas.config.mixers import MIXERS
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.config.trials import LikeTrial, Refused
from vitnas.cost.closed_form import closed_form
from vitnas.errors import VitnasError
from vitnas.noise import Noise
from vitnas.records import TrialRecord, front_of
from vitnas.report.matched import Matched, Matching, Paired
from vitnas.run import Run
from vitnas.surrogate.contrasts import differences
from vitnas.surrogate.features import Facts, facts_of
from vitnas.surrogate.odds import points

_Array = npt.NDArray[np.float64]
_MOST_NETWORKS, _MOST_VALUES, _FEWEST_MEMBERS = 800, 12, 3
_LEVEL = 0.05


@dataclass(frozen=True)
class Effect:
    """A value of an axis.

    Attributes:
        value: as the space file has it.
        points: of top-1 at like FLOPs, against the mean of the axis's values.
        error: its standard deviation.
    """

    value: Any
    points: float
    error: float


@dataclass(frozen=True)
class AxisEffects:
    """An axis.

    Attributes:
        name: its address in the model file, or its name.
        effects: of its values, the best first.
        members: how many members of the front were changed.
        gain_error: standard deviation of `gain`, the errors of both values taken together.
        matched: what pairs of trained networks say of the best value against the worst; None where
            they are too few.
        chance: outside of the smallest region of likely effects that contains "all values do the
            same" (Wald's test); small where the values differ for certain.
    """

    name: str
    effects: tuple[Effect, ...]
    members: int
    chance: float
    gain_error: float
    matched: Matched | None

    @property
    def gain(self) -> float:
        """Points from the worst value to the best one: how much the axis matters."""
        return self.effects[0].points - self.effects[-1].points

    @property
    def is_told(self) -> bool:
        """Whether the values can be told apart."""
        return self.chance < _LEVEL


@dataclass(frozen=True)
class Effects:
    """All axes that the run asked, each in one of three places.

    Attributes:
        axes: those that the model judges; those that can be told first, then by the gain.
        doubling: points of top-1 that twice the FLOPs are worth, all else equal; None where the
            model judges no axis.
        paired: those that matched pairs alone judge, by their names; the largest difference first.
        unjudged: the others, each with the reason.
    """

    axes: tuple[AxisEffects, ...]
    doubling: float | None
    paired: tuple[tuple[str, Paired], ...]
    unjudged: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Changed:
    """An axis, its values, and for each member of the front the network with each value."""

    name: str
    values: tuple[Any, ...]
    networks: tuple[tuple[ModelConfig, ...], ...]


def effects_of(run: Run) -> Effects | None:
    """What the axes of a run's space buy.

    Returns:
        None if the run's space cannot be read here, or if it has no noise. No axis is judged by the
        model if it has too few networks to learn from, or a front of fewer than three members.
    """
    space = space_of(run)
    if space is None or run.noise is None:
        return None
    offered = {axis.name: _values(axis) for axis in space.axes}
    pairs = Matching(run.complete, run.noise)
    axes, doubling = _by_model(run, run.noise, space, offered, pairs) or ((), None)
    asked = {name.partition("@")[0] for trial in run.trials for name in trial.params}
    others = [name for name in offered if name in asked - {axis.name for axis in axes}]
    paired = [(name, found) for name in others if (found := pairs.judged(name, offered[name]))]
    known = {name for name, _ in paired}
    unjudged = ((name, _why_not(offered[name], pairs.number_of(name))) for name in others)
    return Effects(
        axes,
        doubling,
        tuple(sorted(paired, key=lambda one: -one[1].ends.points if one[1].ends else 0.0)),
        tuple((name, why) for name, why in unjudged if name not in known),
    )


def _why_not(values: Sequence[Any], trained: int) -> str:
    """Why matched pairs say nothing of an axis either."""
    if trained < 2:
        return f"{'only one' if trained else 'no'} value was trained to the end"
    if not values:
        return f"it has more than {_MOST_VALUES} values, or all of a range"
    return "no two values have three pairs of like FLOPs"


def _by_model(
    run: Run,
    noise: Noise,
    space: SearchSpace,
    offered: Mapping[str, Sequence[Any]],
    pairs: Matching,
) -> tuple[tuple[AxisEffects, ...], float] | None:
    """The axes that a member of the front can be changed in, and what twice the FLOPs are worth."""
    known = [trial for trial in run.complete if trial.expected is not None]
    front = front_of(known, ("flops",))
    changed = _changes(space, offered, front) if len(front) >= _FEWEST_MEMBERS else []
    if not changed:
        return None
    compared = {trial.key: facts_of(trial.network, trial) for trial in front}
    for config in (c for axis in changed for member in axis.networks for c in member):
        if config.key not in compared:
            compared[config.key] = facts_of(config, closed_form(config))
    found = differences(
        [facts_of(trial.network, trial) for trial in known],
        [trial.trainings for trial in known],
        noise,
        list(compared.values()),
        _weights(changed, compared),
    )
    if found is None:
        return None
    unit = float(points(fmean(trial.estimate or 0.0 for trial in front)))
    (doubling, *means), covariance = unit * found[0], unit**2 * found[1][1:, 1:]
    return tuple(_axes(changed, np.array(means), covariance, pairs)), doubling


def _changes(
    space: SearchSpace, offered: Mapping[str, Sequence[Any]], front: Sequence[TrialRecord]
) -> list[_Changed]:
    """Each axis with the members that can have all of its values."""
    members = _some(front, _MOST_NETWORKS // max(1, sum(map(len, offered.values()))))
    found = []
    for name, values in offered.items():
        rows = (_with_each(space, member, name, values) for member in members)
        networks = tuple(row for row in rows if len({config.key for config in row}) > 1)
        if networks:
            found.append(_Changed(name, tuple(values), networks))
    return found


def space_of(run: Run) -> SearchSpace | None:
    """The run's space; None where it cannot be read here."""
    try:
        return SearchSpace(validate(SpaceConfig, dict(run.space)))
    except VitnasError:
        return None


def _some(front: Sequence[TrialRecord], most: int) -> list[TrialRecord]:
    """At most so many members, but three, evenly along the front."""
    at = np.linspace(0, len(front) - 1, min(len(front), max(_FEWEST_MEMBERS, most)))
    return [front[index] for index in at.round().astype(int).tolist()]


def _values(axis: Axis) -> tuple[Any, ...]:
    """What an axis offers; of many numbers, some, evenly."""
    if isinstance(axis, Choice):
        return axis.labels if 1 < len(axis.labels) <= _MOST_VALUES else ()
    if isinstance(axis, IntRange):
        numbers = range(axis.low, axis.high + 1, axis.step)
        return tuple(numbers[:: -(-len(numbers) // _MOST_VALUES)])
    return ()


def _with_each(
    space: SearchSpace, member: TrialRecord, name: str, values: Sequence[Any]
) -> tuple[ModelConfig, ...]:
    """The member with each value of the axis `name`; nothing if it cannot have one of them, or if
    another package would have to be asked.

    What a value asks beyond the member's own answers is drawn, the same for each of its networks.
    """
    networks = []
    asked = {question.partition("@")[0] for question in member.params}
    for value in values if name in asked else ():
        trial = LikeTrial({**member.params, name: value}, seed=member.number)
        with suppress(Refused):
            config = space.suggest(trial)
            if trial.params.get(name) == value and is_ours(config):
                networks.append(config)
    return tuple(networks) if len(networks) == len(values) else ()


def is_ours(config: ModelConfig) -> bool:
    """Whether its cost is known without importing another package's mixer, or building it."""
    return all(mixer in MIXERS for stage in config.stages for mixer in stage.mixers)


def _weights(changed: Sequence[_Changed], compared: Mapping[str, Facts]) -> _Array:
    """(1 + values of all axes, networks): what twice the FLOPs are worth, and each value's effect.

    Both are weighted sums of f, so the uncertainty of the slope counts in each effect.
    """
    logs = np.array([facts["log flops"] for facts in compared.values()]) / log(2)
    doubling = _slope_weights(logs, list(compared.values()))
    place = {key: index for index, key in enumerate(compared)}
    rows = np.concatenate([_effect_weights(axis, place) for axis in changed])
    return np.vstack([doubling, rows - np.outer(rows @ logs, doubling)])


def _slope_weights(logs: _Array, facts: Sequence[Facts]) -> _Array:
    """(networks,) such that weights times f is the slope of f in log2 FLOPs, by least squares.

    What is no number (a mixer, a norm) has a constant of its own. Along a front such things change
    with the FLOPs, and the front alone would count what they buy as bought by FLOPs.
    """
    kinds = sorted({name for row in facts for name in row if " = " in name})
    table = np.array([[row.get(kind, 0.0) for kind in kinds] for row in facts])
    regressors = np.column_stack([np.ones(len(logs)), logs, table.reshape(len(logs), -1)])
    slope: _Array = np.linalg.pinv(regressors, rcond=1e-6)[1]
    return slope


def _effect_weights(axis: _Changed, place: Mapping[str, int]) -> _Array:
    """(values, networks): each value's mean over the members, less the mean of all values."""
    rows = np.zeros((len(axis.values), len(place)))
    for member in axis.networks:
        for index, config in enumerate(member):
            rows[index, place[config.key]] += 1 / len(axis.networks)
    effects: _Array = rows - rows.mean(axis=0)
    return effects


def _axes(
    changed: Sequence[_Changed], means: _Array, covariance: _Array, pairs: Matching
) -> list[AxisEffects]:
    """Of each axis, from the points of all values and their covariance; see `Effects.axes`."""
    axes, first = [], 0
    for axis in changed:
        part = slice(first, first + len(axis.values))
        axes.append(_axis(axis, means[part], covariance[part, part], pairs))
        first += len(axis.values)
    return sorted(axes, key=lambda axis: (not axis.is_told, -axis.gain))


def _axis(axis: _Changed, means: _Array, covariance: _Array, pairs: Matching) -> AxisEffects:
    order = np.argsort(-means, kind="stable").tolist()
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0)).tolist()
    ends = covariance[np.ix_(order[:: len(order) - 1], order[:: len(order) - 1])]
    wald = float(means @ np.linalg.pinv(covariance, rcond=1e-9, hermitian=True) @ means)
    return AxisEffects(
        axis.name,
        tuple(Effect(axis.values[index], float(means[index]), errors[index]) for index in order),
        len(axis.networks),
        float(chdtrc(len(order) - 1, wald)),
        float(np.sqrt(max(ends[0, 0] + ends[1, 1] - 2 * ends[0, 1], 0.0))),
        pairs.between(axis.name, axis.values[order[0]], axis.values[order[-1]]),
    )
