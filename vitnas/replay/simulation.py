"""Replays a search from a recorded table: the real engine, recorded curves, simulated time.

Controller, samplers and pruners are those of a search. Only the trainings come from the table. The
simulated time of an epoch is the mean time of an epoch in the recorded training. Events happen in
the order of this time.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitnas.config.costs import DEFAULT_COSTS, directions_of
from vitnas.config.space import SearchSpace
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import Decision
from vitnas.engine.decide.rules import Rules
from vitnas.engine.pruning import CONFIDENCE, PrunerName
from vitnas.engine.pruning.pareto import make_pruner
from vitnas.engine.samplers import SamplerName, make_sampler
from vitnas.engine.samplers.pool import FixedPool
from vitnas.engine.store.study import RunStore
from vitnas.records import Outcome
from vitnas.replay.table import Recorded, RecordedTraining, Table

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler
    from optuna.trial import FrozenTrial, TrialState


@dataclass(frozen=True)
class Step:
    """The state of a replay after a training that reached its last epoch.

    Attributes:
        epochs: epochs trained so far by all workers, as a share of those of the whole table.
        trials: number of trials that have ended.
        seconds: simulated time.
        volume: hypervolume of the complete networks above chance, as a share of the whole table's.
        strict: the same above the table's worst network.
    """

    epochs: float
    trials: int
    seconds: float
    volume: float
    strict: float


@dataclass(frozen=True)
class Trace:
    """One replayed search.

    Attributes:
        steps: its steps in order of time.
        stopped: keys of the networks that were stopped early.
        lost: how many of these are on the whole table's front.
        started: number of trainings.
        epochs: epochs trained at the end, as a share of those of the whole table.
        seconds: simulated time until the last training ended.
    """

    steps: tuple[Step, ...]
    stopped: tuple[str, ...]
    lost: int
    started: int
    epochs: float
    seconds: float

    def reach(self, share: float, of: str, by: str) -> float | None:
        """`by` at the first step whose `of` is at least `share`; None if there is no such step.

        Args:
            share: of the whole table's hypervolume, 0 to 1.
            of: `volume` or `strict`.
            by: `epochs`, `trials` or `seconds`.
        """
        reached = (step for step in self.steps if getattr(step, of) >= share - 1e-9)
        first = next(reached, None)
        return None if first is None else float(getattr(first, by))

    def at(self, epochs: float, of: str) -> float:
        """`of` (`volume` or `strict`) at the last step with at most this share of epochs."""
        until = [getattr(step, of) for step in self.steps if step.epochs <= epochs + 1e-9]
        return float(until[-1]) if until else 0.0


def replay(
    table: Table,
    sampler: SamplerName = "ehvi",
    pruner: PrunerName = "none",
    *,
    seed: int = 0,
    workers: int = 1,
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    bins: int = 1,
) -> Trace:
    """Search a table.

    Args:
        table: the networks with their recorded trainings; of each, a search has one.
        sampler: name of the sampler. It proposes only networks of the table.
        pruner: name of the pruner, which stops trials early.
        seed: seed of the run.
        workers: number of trainings at the same time.
        trials: number of trainings; None = one for each network of the table.
        confidence: confidence of the pruner's predictions of learning curves.
        bins: number of bins of similar FLOPs in which the pruner ranks.
    """
    rules = Rules(
        num_trials=min(trials or len(table.networks), len(table.networks)),
        seed=seed,
        sampler=sampler,
        samplers=partial(held_sampler, table),
        pruner=make_pruner(pruner, table.epochs, confidence, bins),
    )
    controller = Controller(MemoryStore({"seed": seed}), table.space, rules)
    simulation = _Simulation(table, controller, seed)
    simulation.run(workers)
    stopped = tuple(t.key for t in controller.trials if t.outcome is Outcome.STOPPED)
    return Trace(
        steps=tuple(simulation.steps),
        stopped=stopped,
        lost=len(table.front & set(stopped)),
        started=controller.num_ended,
        epochs=simulation.share,
        seconds=simulation.now,
    )


def held_sampler(table: Table, name: SamplerName, seed: int, space: SearchSpace) -> BaseSampler:
    """The sampler of this name, which proposes only networks of `table`."""
    proposals = [network.proposal for network in table.networks]
    if name == "ehvi":
        from vitnas.engine.samplers.ehvi import EHVISampler

        return EHVISampler(FixedPool(proposals), seed)
    from vitnas.replay.held import HeldSampler

    return HeldSampler(make_sampler(name, seed, space), space, proposals, seed)


class _Simulation:
    """Workers whose trainings come from the table, and the results so far.

    Of each network they have the training that the `seed` gives; what is found counts with the mean
    of all its trainings.
    """

    def __init__(self, table: Table, controller: Controller, seed: int) -> None:
        self._table, self._controller = table, controller
        self._by_key = {network.proposal.key: network for network in table.networks}
        self._trainings = {key: network.training_of(seed) for key, network in self._by_key.items()}
        self._queue: list[tuple[float, int, int]] = []  # time, trial, epoch that ends then
        self._spent = 0
        self._total = sum(training.length for training in self._trainings.values())
        self._found: list[Recorded] = []
        self._floors = {"volume": table.chance, "strict": table.worst}
        self._whole = {name: self._volume(table.complete, name) for name in self._floors}
        self.steps: list[Step] = []
        self.now = 0.0

    @property
    def share(self) -> float:
        """Epochs trained, as a share of those of the whole table."""
        return self._spent / self._total

    def run(self, workers: int) -> None:
        for _ in range(workers):
            self._start(0.0)
        while self._queue:
            now, number, epoch = heapq.heappop(self._queue)
            self._spent, self.now = self._spent + 1, now
            if self._ends(now, number, epoch):
                self._start(now)

    def _training(self, number: int) -> RecordedTraining:
        return self._trainings[self._controller.trials[number].key]

    def _start(self, now: float) -> None:
        job = self._controller.next()
        if job is not None:
            self._wait(now, job.number, 1)

    def _wait(self, now: float, number: int, epoch: int) -> None:
        training = self._training(number)
        heapq.heappush(self._queue, (now + training.seconds / training.length, number, epoch))

    def _ends(self, now: float, number: int, epoch: int) -> bool:
        """Report an epoch.

        Returns:
            Whether the training ends with it.
        """
        training = self._training(number)
        if epoch > len(training.curve):
            self._controller.fail(number, training.outcome, "as recorded")
            return True
        decision = self._controller.report(number, epoch, training.curve[epoch - 1])
        if decision is Decision.CONTINUE and epoch < self._table.epochs:
            self._wait(now, number, epoch + 1)
            return False
        self._controller.finish(number, seconds=training.seconds, device="recorded")
        if epoch == self._table.epochs:
            self._take(now, self._by_key[self._controller.trials[number].key])
        return True

    def _take(self, now: float, network: Recorded) -> None:
        self._found.append(network)
        shares = {
            name: self._volume(self._found, name) / whole if whole else 1.0
            for name, whole in self._whole.items()
        }
        self.steps.append(Step(self.share, self._controller.num_ended, now, **shares))

    def _volume(self, networks: Sequence[Recorded], name: str) -> float:
        return self._table.volume(
            [network.proposal.flops for network in networks],
            [network.top1 for network in networks],
            self._floors[name],
        )


class _NoFile:
    """Takes the place of Optuna's storage in a run without a file. It stores nothing."""

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None: ...

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial) -> int:
        return 0

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None: ...

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Any = None) -> bool:
        return True


class MemoryStore(RunStore):
    """A run's study, in memory only."""

    def __init__(self, fixed: Mapping[str, Any]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.path = Path("memory")
        self._file: Any = _NoFile()
        self._study_id = 0
        self._attrs = dict(fixed)
        self.study = optuna.create_study(directions=directions_of(DEFAULT_COSTS))
        self._ids: list[int] = []
        self._flushed = math.inf
