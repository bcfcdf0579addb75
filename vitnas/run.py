"""What a results folder holds: its trials, their front, noise and chances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.costs import costs_of, log_costs
from vitnas.errors import ConfigError
from vitnas.records import BaselineRecord, Outcome, TrialRecord, front_of
from vitnas.sessions import Environment

if TYPE_CHECKING:
    from vitnas.noise import Noise

_MOST_EXPECTED = 500  # the time grows with the third power


@dataclass(frozen=True)
class Run:
    """What a results folder holds.

    Attributes:
        path: the folder.
        name: the space's name.
        trials: every candidate, by number; refused and duplicate ones included.
        space: the space file's tree.
        environment: what the run tells of its sessions, its data and its proxy training.
        num_trials: how many trials the run was asked for.
        replicates: trainings of candidates with other seeds, by number; their trials know of them.
        baselines: reference networks that were trained for comparison, by family and FLOPs.
        num_baselines: how many the last session was to have; 0 in a run that does not say.
    """

    path: Path
    name: str
    trials: tuple[TrialRecord, ...]
    space: Mapping[str, Any]
    environment: Environment
    num_trials: int
    replicates: tuple[TrialRecord, ...] = ()
    baselines: tuple[BaselineRecord, ...] = ()
    num_baselines: int = 0

    def __repr__(self) -> str:
        trials = sum(trial.outcome.is_trial for trial in self.trials)
        what = f"{len(self.complete)} complete, {len(self.front)} on the front"
        return f"Run('{self.path}', {trials} trials, {what})"

    @cached_property
    def complete(self) -> tuple[TrialRecord, ...]:
        """Trials trained to the end, in order of their number, each with its expected top-1.

        All trainings of the run tell what to expect of a network (see `vitnas.surrogate.expected`).
        The expected top-1 is None if `noise` is, or if a network cannot be read here because its
        mixer is another package's.
        """
        complete = tuple(trial for trial in self.trials if trial.outcome is Outcome.COMPLETE)
        with suppress(ConfigError):
            return _with_expected(complete, self.noise, self.costs)
        return complete

    @property
    def costs(self) -> tuple[str, ...]:
        """The costs among its objectives; the remaining objective is top-1."""
        return costs_of(self.space)

    @property
    def epochs(self) -> int:
        """Epochs of a whole training; 0 where the space does not say."""
        proxy = self.space.get("proxy")
        return proxy.get("epochs") or 0 if isinstance(proxy, Mapping) else 0

    @property
    def front(self) -> tuple[TrialRecord, ...]:
        """The non-dominated complete trials (estimate of top-1 up, costs the better way), sorted by
        the first cost, the best first."""
        return front_of(self.complete, self.costs)

    @property
    def knee(self) -> TrialRecord | None:
        """The front member with the least sum of top-1 lost and log costs, each scaled to the
        front's range; with one cost, the one farthest from the chord of the front's ends."""
        from vitnas.pareto import knee

        members = self.front
        points = [
            (-(t.estimate or 0.0), *log_costs(self.costs, t.costs(self.costs))) for t in members
        ]
        return members[knee(points)] if members else None

    def trainings_of(self, trial: TrialRecord) -> tuple[int, ...]:
        """Numbers of a candidate and of its replicates."""
        again = (t.number for t in self.replicates if t.replicate_of == trial.number)
        return (trial.number, *again)

    @cached_property
    def noise(self) -> Noise | None:
        """How far trainings scatter; None where the run does not say what top-1 was measured on."""
        from vitnas.noise import measure

        images = self.environment.data.num_val_images
        return measure([t.trainings for t in _scored(self.trials)], images) if images else None

    @cached_property
    def chances(self) -> Mapping[int, float]:
        """Probability of each complete trial to be on the front, by number (see `vitnas.noise`).

        Empty where `noise` is None. Without replicates it is that of the binomial error alone.
        """
        from vitnas.noise import chances_of

        trials = _scored(self.complete)
        if self.noise is None or not trials:
            return {}
        costs = [trial.minimized(self.costs) for trial in trials]
        alone = self.noise.expected([trial.trainings for trial in trials])
        known = [t.expected or own for t, own in zip(trials, alone, strict=True)]
        values = chances_of(known, costs, self.noise.degrees)
        return dict(zip((trial.number for trial in trials), values.tolist(), strict=True))

    @property
    def confident(self) -> tuple[TrialRecord, ...]:
        """Networks that are on the front with a probability of at least 0.9, cheapest first."""
        return self._standing_as("confident")

    @property
    def plausible(self) -> tuple[TrialRecord, ...]:
        """Other networks with at least 0.1, on the front or not, cheapest first."""
        return self._standing_as("plausible")

    def standing(self, trial: TrialRecord) -> str | None:
        """`confident`, `plausible` or None."""
        from vitnas.noise import CONFIDENT, PLAUSIBLE

        chance = self.chances.get(trial.number, 0.0)
        if chance >= CONFIDENT:
            return "confident"
        return "plausible" if chance >= PLAUSIBLE else None

    def _standing_as(self, name: str) -> tuple[TrialRecord, ...]:
        members = (trial for trial in self.complete if self.standing(trial) == name)
        return tuple(
            sorted(members, key=lambda trial: (*trial.minimized(self.costs), trial.number))
        )

    def count(self, outcome: Outcome) -> int:
        return sum(trial.outcome is outcome for trial in self.trials)


def _scored(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The complete ones with finite top-1."""
    complete = (trial for trial in trials if trial.outcome is Outcome.COMPLETE)
    return [t for t in complete if t.trainings and all(map(isfinite, t.trainings))]


def _with_expected(
    complete: tuple[TrialRecord, ...], noise: Noise | None, costs: Sequence[str]
) -> tuple[TrialRecord, ...]:
    """Complete trials with their expected top-1; of many, only those that are nearest to the front.

    Raises:
        ConfigError: a network cannot be read.
    """
    from vitnas.pareto import front_ranks
    from vitnas.surrogate.expected import expected_top1
    from vitnas.surrogate.features import facts_of

    known = _scored(complete)
    if noise is None or not known:
        return complete
    if len(known) > _MOST_EXPECTED:
        ranks = front_ranks([trial.point(costs) for trial in known]).tolist()
        ranked = sorted(zip(ranks, known, strict=True), key=lambda pair: (pair[0], pair[1].number))
        known = [trial for _, trial in ranked[:_MOST_EXPECTED]]
    facts = [facts_of(trial.network, trial) for trial in known]
    found = expected_top1(facts, [trial.trainings for trial in known], noise)
    by_number = dict(zip((trial.number for trial in known), found, strict=True))
    return tuple(replace(trial, expected=by_number.get(trial.number)) for trial in complete)
