"""Every candidate of a run as it stands: in memory, in the study, and as listeners are told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vitnas.config.space import SearchSpace
from vitnas.config.trials import Refused
from vitnas.cost.closed_form import closed_form
from vitnas.engine.decide.locate import Candidate
from vitnas.engine.store.study import RunStore
from vitnas.engine.watch.watcher import Listener
from vitnas.records import Outcome, TrialRecord
from vitnas.seeds import derive_seed


class Ledger:
    """Records decisions; decides nothing.

    A change to a candidate is in memory and in the study at once. So a driver may be killed at any
    moment, and the study has everything that it knew.

    Args:
        store: the run's study.
        space: what a candidate's parameters mean.
        seed: of the run; a trial's own seed comes from it and the network's key.
        listener: told of every change.
    """

    def __init__(
        self, store: RunStore, space: SearchSpace, seed: int, listener: Listener | None = None
    ) -> None:
        self.store = store
        self._space, self._seed = space, seed
        self._listener = listener or (lambda event, trial: None)
        store.settle()
        self._trials = {record.number: record for record in store.records()}
        self._by_key = {t.key: t.number for t in self._trials.values() if _owns_key(t)}
        self._num_ended = sum(t.is_ended_here for t in self._trials.values())
        for trial in self.trials:
            self._listener("known", trial)

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """Every candidate so far, by number."""
        return tuple(self._trials.values())  # numbers only ever grow

    @property
    def num_ended(self) -> int:
        """Trainings started and ended, those of earlier sessions included."""
        return self._num_ended

    @property
    def keys(self) -> frozenset[str]:
        """Networks that are in training or whose result is known."""
        return frozenset(self._by_key)

    def __getitem__(self, number: int) -> TrialRecord:
        return self._trials[number]

    def number_of(self, key: str) -> int | None:
        """The trial that has a network or its result; None where it is new."""
        return self._by_key.get(key)

    def own(self, number: int) -> None:
        """Later draws of this candidate's network are duplicates of it."""
        self._by_key[self._trials[number].key] = number

    def enter(
        self,
        candidate: Candidate | None = None,
        seed: int | None = None,
        taken: bool = False,
        replicate_of: int | None = None,
    ) -> TrialRecord:
        """A new candidate, described and priced; or refused where its parameters break a rule.

        Args:
            candidate: what it is; None = the study's sampler proposes.
            seed: of its training; None = the network's own.
            taken: see `TrialRecord`.
            replicate_of: see `TrialRecord`.
        """
        trial = self.store.ask(None if candidate is None else candidate.params)
        number = trial.number
        self._trials[number] = TrialRecord(number, outcome=Outcome.RUNNING)
        try:
            config = self._space.suggest(trial)
        except Refused as refusal:
            return self.end(number, Outcome.REFUSED, error=str(refusal))
        cost = closed_form(config)
        network = {
            "config": config.to_tree(),
            "key": config.key,
            "flops": cost.flops,
            "num_params": cost.num_params,
            "seed": derive_seed(self._seed, config.key) if seed is None else seed,
        }
        if candidate is not None:
            network |= {"origin": candidate.origin, "taken": taken}
        if replicate_of is not None:
            network["replicate_of"] = replicate_of
        self.store.describe(number, "network", network)
        return self._update(number, params=dict(trial.params), **network)

    def start(self, number: int) -> TrialRecord:
        """Trial `number` is trained from its beginning; the curve of a lost training is dropped."""
        if self._trials[number].curve:
            self.curve(number, ())
        return self._tell("start", number)

    def epoch(self, number: int, epoch: int, top1: float) -> TrialRecord:
        """Add the accuracy after `epoch` (from 1)."""
        self.curve(number, (*self._trials[number].curve[: epoch - 1], round(top1, 4)))
        return self._tell("epoch", number)

    def curve(self, number: int, curve: tuple[float, ...]) -> None:
        """Set top-1 after each epoch."""
        self.store.describe(number, "curve", list(curve))
        self._update(number, curve=curve)

    def measured(self, number: int, measured: Mapping[str, float], measured_on: str) -> TrialRecord:
        """Add what it costs on a device; see `TrialRecord`."""
        self.store.describe(number, "measured", {**measured, "measured_on": measured_on})
        return self._update(number, measured=dict(measured), measured_on=measured_on)

    def copy_measured(self, number: int, earlier: TrialRecord) -> None:
        """What was measured of a network holds for another training of it."""
        if earlier.measured:
            self.measured(number, earlier.measured, earlier.measured_on)

    def alone(self, number: int, reason: str) -> None:
        """Trial `number` is to have its device for itself, in later sessions, too."""
        self.store.describe(number, "alone", reason)

    def spent(self, number: int, gpu_seconds: float) -> None:
        """What all attempts of a training have taken so far; stored when it ends."""
        self._update(number, gpu_seconds=gpu_seconds)

    def end(self, number: int, outcome: Outcome, event: str = "end", **result: Any) -> TrialRecord:
        """Write how trial `number` ended, and tell the sampler.

        Args:
            number: of a running trial.
            outcome: how it ended; the objectives of a complete one are what is known of it.
            event: what listeners are told.
            **result: fields of `TrialRecord`.
        """
        values = self._values(number) if outcome is Outcome.COMPLETE else None
        return self._end(number, outcome, values, event, **result)

    def answer(self, number: int, original: int) -> TrialRecord:
        """End a duplicate with the known values of its network, for the sampler."""
        complete = self._trials[original].outcome is Outcome.COMPLETE
        values = self._values(original) if complete else None
        return self._end(number, Outcome.DUPLICATE, values, duplicate_of=original)

    def _end(
        self,
        number: int,
        outcome: Outcome,
        values: tuple[float, ...] | None,
        event: str = "end",
        **result: Any,
    ) -> TrialRecord:
        self.store.tell(number, outcome, values, **result)
        ended = self._update(number, outcome=outcome, ended=time.time(), **result)
        self._num_ended += ended.is_ended_here
        return self._tell(event, number)

    def _values(self, number: int) -> tuple[float, ...] | None:
        """What the study holds of a complete trial: top-1, then the costs; None without top-1."""
        trial = self._trials[number]
        if trial.top1 is None:
            return None
        return (trial.top1, *trial.costs(self._space.config.objectives.costs))

    def _update(self, number: int, **changes: Any) -> TrialRecord:
        self._trials[number] = replace(self._trials[number], **changes)
        return self._trials[number]

    def _tell(self, event: str, number: int) -> TrialRecord:
        self._listener(event, self._trials[number])
        return self._trials[number]


def _owns_key(trial: TrialRecord) -> bool:
    """Whether later draws of the same network are duplicates of this ended trial."""
    is_measured = trial.outcome is Outcome.REFUSED and bool(trial.measured)
    return trial.replicate_of is None and (trial.outcome.is_trial or is_measured)
