"""What a results folder holds: its trials, their front, noise and chances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.costs import QUALITIES, costs_of, log_costs, quality_of
from vitnas.longer import LongTrainings, read_long
from vitnas.ranking import Draws, chances_by_number, draws_of, expecting, noise_of
from vitnas.records import BaselineRecord, Outcome, TrialRecord, front_of
from vitnas.sessions import Environment

if TYPE_CHECKING:
    from vitnas.noise import Noise


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
        return expecting(complete, self.noise, self.costs)

    @property
    def costs(self) -> tuple[str, ...]:
        """The costs among its objectives; the remaining objective is an accuracy."""
        return costs_of(self.space)

    @property
    def quality(self) -> str:
        """The accuracy among its objectives, as texts name it: `top-1` or `int8 top-1`."""
        return QUALITIES[quality_of(self.space)]

    @property
    def is_int8(self) -> bool:
        """Whether its accuracies are those of trained networks in int8."""
        return quality_of(self.space) == "top1_int8"

    @property
    def epochs(self) -> int:
        """Epochs of a whole training; 0 where the space does not say."""
        proxy = self.space.get("proxy")
        return proxy.get("epochs") or 0 if isinstance(proxy, Mapping) else 0

    @property
    def lr(self) -> float | None:
        """Peak learning rate of its trials; None where the space does not say."""
        proxy = self.space.get("proxy")
        found = proxy.get("lr") if isinstance(proxy, Mapping) else None
        return found if isinstance(found, float) and found > 0 else None

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

    def spread(self, number: int) -> tuple[TrialRecord, ...]:
        """Members of the front, evenly over log FLOPs with its ends; one alone is the knee.

        Args:
            number: how many, from 1 on; a smaller front has fewer.

        Returns:
            Cheapest first; none where no trial is complete.
        """
        members = sorted(self.front, key=lambda trial: trial.flops)
        number = min(number, len(members))
        if number < 2:
            return (self.knee,) if number and self.knee else ()
        sizes = {trial.number: log(max(trial.flops, 1)) for trial in members}
        low, high = sizes[members[0].number], sizes[members[-1].number]
        chosen: list[TrialRecord] = []
        for index in range(number):
            wanted = low + (high - low) * index / (number - 1)
            left = [trial for trial in members if trial not in chosen]
            chosen.append(min(left, key=lambda trial: abs(sizes[trial.number] - wanted)))
        return tuple(sorted(chosen, key=lambda trial: trial.flops))

    def trainings_of(self, trial: TrialRecord) -> tuple[int, ...]:
        """Numbers of a candidate and of its replicates."""
        again = (t.number for t in self.replicates if t.replicate_of == trial.number)
        return (trial.number, *again)

    @cached_property
    def long(self) -> LongTrainings:
        """Long trainings of its complete networks and of baselines, as a file in its folder tells.

        Raises:
            RunError: the file cannot be read.
        """
        complete = (trial for trial in self.trials if trial.outcome is Outcome.COMPLETE)
        return read_long(self.path, {trial.number: trial.key for trial in complete})

    @cached_property
    def noise(self) -> Noise | None:
        """How far trainings scatter; None where the run does not say what top-1 was measured on."""
        return noise_of(self.trials, self.environment.data.num_val_images)

    @cached_property
    def chances(self) -> Mapping[int, float]:
        """Probability of each complete trial to be on the front, by number (see `vitnas.noise`).

        Empty where `noise` is None. Without replicates it is that of the binomial error alone.
        """
        return chances_by_number(self.complete, self.noise, self.costs)

    @cached_property
    def draws(self) -> Draws | None:
        """What the top-1 of its networks may be in truth, 1,000 times (see `ranking.draws_of`)."""
        return draws_of(self.complete, self.noise, self.chances)

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
