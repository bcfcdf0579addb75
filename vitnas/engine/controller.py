"""Decides what is trained next, what is stopped, and what is written down. No Ray, no torch.

A back end asks `next()` for a job, tells `report()` the accuracy after every epoch, and ends it
with `finish`, `fail` or `interrupt`. Limits, duplicates, pruning and retries are decided here and
nowhere else, and everything decided is in the study before the call returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from vitnas.config.drawing import Refused
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.cost.survey import all_within
from vitnas.engine.pruning import FrontRankPruner
from vitnas.engine.samplers import SamplerName, make_sampler
from vitnas.engine.study import RunStore
from vitnas.records import Outcome, TrialRecord
from vitnas.seeds import derive_seed

MAX_RETRIES = 3
REPEATS_BEFORE_RANDOM = 5
MAX_FRUITLESS = 300


class Decision(str, Enum):
    """What a training does after an epoch."""

    CONTINUE = "continue"
    STOP = "stop"


@dataclass(frozen=True)
class Job:
    """One training to run: everything that determines its result."""

    number: int
    config: ModelConfig
    seed: int


Listener = Callable[[str, TrialRecord], None]
"""Called with `known` (from an earlier session), `start`, `epoch` or `end` and the trial as it
then stands."""


class Controller:
    """The one place where a search is steered.

    Args:
        store: the run's study.
        space: where networks are drawn from.
        num_trials: trainings to start and end, those of earlier sessions included.
        epochs: length of a full training.
        seed: of the run; a trial's own seed comes from it and the network's key.
        sampler: who proposes.
        pruner: who stops trials early; None = nobody.
        listener: told of every change; for displays.

    Attributes:
        exhausted: every network of the space is known, or it has shown nothing new for
            `MAX_FRUITLESS` draws in a row.
    """

    def __init__(
        self,
        store: RunStore,
        space: SearchSpace,
        *,
        num_trials: int,
        epochs: int,
        seed: int,
        sampler: SamplerName = "tpe",
        pruner: FrontRankPruner | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.store, self.space, self.pruner = store, space, pruner
        self.num_trials, self.epochs, self.seed = num_trials, epochs, seed
        self.exhausted = False
        self._listener = listener or (lambda event, trial: None)
        self._all_keys: frozenset[str] | None = None
        self._in_flight: set[int] = set()
        self._retries: dict[int, int] = {}
        self._requeued: deque[int] = deque()
        store.settle()
        self._trials = {record.number: record for record in store.records()}
        self._by_key = {t.key: t.number for t in self._trials.values() if _owns_key(t)}
        self._take_up()
        session = int(store.attrs.get("num_sessions", 0))
        store.set("num_sessions", session + 1)
        self._sampler = make_sampler(sampler, derive_seed(seed, "session", session))
        self._random = make_sampler("random", derive_seed(seed, "random", session))

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """Every candidate so far, by number."""
        return tuple(self._trials[number] for number in sorted(self._trials))

    @property
    def num_ended(self) -> int:
        """Trainings started and ended."""
        return sum(trial.outcome.is_trial for trial in self._trials.values())

    @property
    def num_in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def done(self) -> bool:
        """Whether there is nothing to start and nothing under way."""
        return not self._in_flight and not self._may_start()

    def next(self) -> Job | None:
        """The next training, or None when no more are to be started now."""
        if not self._may_start():
            return None
        number = self._requeued.popleft() if self._requeued else self._draw()
        if number is None:
            self.exhausted = True
            return None
        self._in_flight.add(number)
        self._update(number, curve=())
        self._listener("start", self._trials[number])
        return self._job(number)

    def report(self, number: int, epoch: int, top1: float) -> Decision:
        """Take the accuracy after `epoch` (from 1) and say whether to go on."""
        trial = self._trials[number]
        curve = (*trial.curve[: epoch - 1], round(top1, 4))
        self.store.describe(number, "curve", list(curve))
        self._update(number, curve=curve)
        self._listener("epoch", self._trials[number])
        if epoch >= self.epochs or self.pruner is None:
            return Decision.CONTINUE
        peers = (
            (t.flops, t.curve[epoch - 1])
            for t in self._trials.values()
            if t.number != number and len(t.curve) >= epoch
        )
        stop = self.pruner.should_stop(epoch, (trial.flops, top1), peers)
        return Decision.STOP if stop else Decision.CONTINUE

    def finish(self, number: int, *, seconds: float, device: str) -> TrialRecord:
        """End a training that ran to its last epoch or was stopped by `report`."""
        trial = self._trials[number]
        result: dict[str, Any] = {"seconds": round(seconds, 3), "device": device}
        if trial.epochs < self.epochs:
            return self._end(number, Outcome.STOPPED, **result)
        assert trial.top1 is not None
        return self._end(number, Outcome.COMPLETE, (trial.top1, float(trial.flops)), **result)

    def fail(self, number: int, outcome: Outcome, error: str, **result: Any) -> TrialRecord:
        """End a training that raised: `failed`, `diverged` or `oom`. It is not tried again."""
        return self._end(number, outcome, error=error, **result)

    def interrupt(self, number: int, reason: str) -> None:
        """A worker or node was lost: train again from the start, at most `MAX_RETRIES` times."""
        self._in_flight.discard(number)
        self._retries[number] = self._retries.get(number, 0) + 1
        if self._retries[number] > MAX_RETRIES:
            error = f"lost {self._retries[number]} times: {reason}"
            self._end(number, Outcome.FAILED, error=error)
        else:
            self._requeued.append(number)

    def _may_start(self) -> bool:
        if self.exhausted and not self._requeued:
            return False
        return self.num_ended + len(self._in_flight) < self.num_trials

    def _draw(self) -> int | None:
        """A new network within the limits, as a trial number; None when none is found."""
        repeats = 0
        for _ in range(MAX_FRUITLESS):
            if repeats == REPEATS_BEFORE_RANDOM and self._nothing_left():
                return None
            use_random = repeats >= REPEATS_BEFORE_RANDOM
            self.store.study.sampler = self._random if use_random else self._sampler
            outcome, number = self._draw_once()
            if outcome is Outcome.RUNNING:
                return number
            repeats = repeats + 1 if outcome is Outcome.DUPLICATE else 0
        return None

    def _nothing_left(self) -> bool:
        """Whether every network of a small space is known already."""
        if self._all_keys is None:
            self._all_keys = all_within(self.space) or frozenset({"too many to list"})
        return self._all_keys <= self._by_key.keys()

    def _draw_once(self) -> tuple[Outcome, int]:
        trial = self.store.ask()
        number = trial.number
        self._trials[number] = TrialRecord(number, Outcome.RUNNING)
        try:
            config = self.space.suggest(trial)
        except Refused as refusal:
            self._end(number, Outcome.REFUSED, error=str(refusal))
            return Outcome.REFUSED, number
        cost = closed_form(config)
        network = {
            "config": config.to_tree(),
            "key": config.key,
            "flops": cost.flops,
            "num_params": cost.num_params,
            "seed": derive_seed(self.seed, config.key),
        }
        self.store.describe(number, "network", network)
        self._update(number, params=dict(trial.params), **network)
        return self._admit(number), number

    def _admit(self, number: int) -> Outcome:
        """Refuse a described candidate, answer it from the study, or let it train."""
        trial = self._trials[number]
        problem = over_limits(trial, self.space.config.limits)
        if problem:
            return self._end(number, Outcome.REFUSED, error=problem).outcome
        if trial.key in self._by_key:
            return self._answer_duplicate(number, self._by_key[trial.key]).outcome
        self._by_key[trial.key] = number
        return Outcome.RUNNING

    def _answer_duplicate(self, number: int, original: int) -> TrialRecord:
        """Tell the sampler what is known of this network already."""
        earlier = self._trials[original]
        values = None
        if earlier.outcome is Outcome.COMPLETE and earlier.top1 is not None:
            values = (earlier.top1, float(earlier.flops))
        return self._end(number, Outcome.DUPLICATE, values, duplicate_of=original)

    def _end(
        self,
        number: int,
        outcome: Outcome,
        values: tuple[float, float] | None = None,
        **result: Any,
    ) -> TrialRecord:
        self.store.tell(number, outcome, values, **result)
        self._in_flight.discard(number)
        self._update(number, outcome=outcome, **result)
        self._listener("end", self._trials[number])
        return self._trials[number]

    def _update(self, number: int, **changes: Any) -> None:
        self._trials[number] = replace(self._trials[number], **changes)

    def _job(self, number: int) -> Job:
        trial = self._trials[number]
        return Job(number, validate(ModelConfig, dict(trial.config)), trial.seed)

    def _take_up(self) -> None:
        """Go on where an earlier driver ended, at whatever moment that was."""
        for trial in self.trials:
            self._listener("known", trial)
            if trial.outcome is not Outcome.RUNNING:
                continue
            if not trial.key:
                error = "the driver ended while this candidate was being drawn"
                self._end(trial.number, Outcome.REFUSED, error=error)
            elif self._admit(trial.number) is Outcome.RUNNING:
                self._requeued.append(trial.number)


def _owns_key(trial: TrialRecord) -> bool:
    """Whether later draws of the same network are duplicates of this ended trial."""
    return trial.outcome.is_trial
