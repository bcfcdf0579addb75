"""Decides what is trained next, what is stopped, and what is written down. No Ray, no torch.

A back end asks `next()` for a job, tells `measured()` what it costs on the device where the space
asks for that, tells `report()` the accuracy after every epoch, and ends it
with `finish`, `fail` or `interrupt`. Limits, duplicates, pruning and retries are decided here and
nowhere else, and everything decided is in the study before the call returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from vitnas.config.drawing import Refused
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.cost.survey import all_within
from vitnas.engine.budget import Budget, Meter
from vitnas.engine.locate import Candidate
from vitnas.engine.pruning import ParetoPruner
from vitnas.engine.replicates import Replication
from vitnas.engine.samplers import DEFAULT_SAMPLER, SamplerFactory, SamplerName, make_sampler
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
    """One training to run: everything that determines its result.

    Attributes:
        number: of the trial.
        config: the network.
        seed: of the training.
        alone: whether it shall have its device for itself, having run out of memory on a share.
        again: whether its network is that of an earlier job with another seed: what it costs is
            known and not measured again.
    """

    number: int
    config: ModelConfig = field(repr=False)
    seed: int
    alone: bool = False
    again: bool = False


Listener = Callable[[str, TrialRecord], None]
"""Called with `known` (from an earlier session or another run), `start`, `epoch` or `end` and the
trial as it then stands."""


class Controller:
    """The one place where a search is steered.

    Args:
        store: the run's study.
        space: where networks are drawn from.
        num_trials: trainings to start and end, those of earlier sessions included.
        epochs: length of a full training.
        seed: of the run; a trial's own seed comes from it and the network's key.
        sampler: who proposes.
        samplers: makes samplers by their names.
        pruner: who stops trials early; None = nobody.
        listener: told of every change; for displays.
        budget: what may be spent beside; None = no bounds.
        first: what is trained before the sampler is asked.
        replication: who is trained again once the trials have ended; None = nobody.

    Attributes:
        costs: those among the objectives.
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
        sampler: SamplerName = DEFAULT_SAMPLER,
        samplers: SamplerFactory = make_sampler,
        pruner: ParetoPruner | None = None,
        listener: Listener | None = None,
        budget: Budget | None = None,
        first: Iterable[Candidate] = (),
        replication: Replication | None = None,
    ) -> None:
        self.store, self.space, self.pruner = store, space, pruner
        self.num_trials, self.epochs, self.seed = num_trials, epochs, seed
        self.costs = space.config.objectives.costs
        self.exhausted = False
        self._measured_in_vain = 0
        self._listener = listener or (lambda event, trial: None)
        self._all_keys: frozenset[str] | None = None
        self._first = deque(first)
        self._replication = replication or Replication(0, 1)
        self._in_flight: set[int] = set()
        self._retries: dict[int, int] = {}
        self._requeued: deque[int] = deque()
        self._aside: deque[int] = deque()  # out of memory once: again at the end, alone
        self._again: deque[int] = deque()  # replicates that were lost or out of memory once
        self._alone: set[int] = set()
        self._draining = False
        store.settle()
        self._trials = {record.number: record for record in store.records()}
        self._by_key = {t.key: t.number for t in self._trials.values() if _owns_key(t)}
        self._num_ended = sum(t.is_ended_here for t in self._trials.values())
        spent = sum(t.gpu_seconds for t in self._trials.values())
        self._meter = Meter(budget or Budget(), spent)
        self._take_up()
        session = int(store.attrs.get("num_sessions", 0))
        store.set("num_sessions", session + 1)
        self._sampler = samplers(sampler, derive_seed(seed, "session", session), space)
        self._random = samplers("random", derive_seed(seed, "random", session), space)

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """Every candidate so far, by number."""
        return tuple(self._trials.values())  # numbers only ever grow

    @property
    def num_ended(self) -> int:
        """Trainings started and ended, those of earlier sessions included."""
        return self._num_ended

    @property
    def num_in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def done(self) -> bool:
        """Whether there is nothing to start and nothing under way."""
        return not self._in_flight and (self.stopped_by is not None or not self._is_work_left())

    @property
    def stopped_by(self) -> str | None:
        """Why nothing more may be started, whatever is left; None while it may."""
        return "interrupted" if self._draining else self._meter.spent

    @property
    def cut_short_by(self) -> str | None:
        """Why the run has fewer trainings than it was to have; None when it has them all."""
        if self._num_ended >= self.num_trials:
            return self.stopped_by if self._is_replicate_left() else None
        if self.exhausted and not self._is_work_left():
            return "the space has nothing new to show"
        return self.stopped_by

    @property
    def is_interrupted(self) -> bool:
        """Whether `drain` has left something to do."""
        return self._draining and self.cut_short_by == "interrupted"

    def drain(self) -> None:
        """Start nothing more; what is under way goes on to its end."""
        self._draining = True

    def next(self) -> Job | None:
        """The next training, or None when no more are to be started now."""
        number = None if self.stopped_by else self._pick()
        if number is None:
            return None
        self._in_flight.add(number)
        if self._trials[number].curve:  # of a training that was lost
            self.store.describe(number, "curve", [])
            self._update(number, curve=())
        self._listener("start", self._trials[number])
        return self._job(number)

    def began(self, number: int) -> None:
        """The training of trial `number` occupies its device from now."""
        self._meter.begin(number, alone=number in self._alone)

    def elapsed(self, number: int) -> float:
        """Seconds since `began`."""
        return self._meter.elapsed(number)

    def take(self, candidate: Candidate, earlier: TrialRecord) -> int | None:
        """Take over what another run found of a network, as a trial of this one.

        Returns:
            Its number here; None where the network is known already, or where it was not measured
            what this space has to know or is over a limit.
        """
        config = self.space.config
        known = all(getattr(earlier, name) is not None for name in config.measured)
        if candidate.key in self._by_key or not known or over_limits(earlier, config.limits):
            return None
        outcome, number = self._suggest(candidate, seed=earlier.seed, taken=True)
        if outcome is not Outcome.RUNNING:
            return None
        self._by_key[candidate.key] = number
        self.store.describe(number, "curve", list(earlier.curve))
        self._update(number, curve=earlier.curve)
        complete = earlier.outcome is Outcome.COMPLETE and earlier.top1 is not None
        self._copy_measured(number, earlier)
        values = self._values(number) if complete else None
        result = {"seconds": earlier.seconds, "device": earlier.device}
        self._end(number, earlier.outcome, values, event="known", **result)
        return number

    def measured(
        self, number: int, latency_ms: float, peak_memory_mb: float, measured_on: str
    ) -> Decision:
        """Take what a network costs on its device, before it is trained there; STOP: it is refused.

        Args:
            number: of the trial.
            latency_ms, peak_memory_mb, measured_on: see `TrialRecord`.
        """
        self._describe_measured(number, latency_ms, peak_memory_mb, measured_on)
        problem = over_limits(self._trials[number], self.space.config.limits)
        if problem is None:
            self._measured_in_vain = 0
            return Decision.CONTINUE
        self._end(number, Outcome.REFUSED, error=problem, device=measured_on)
        self._measured_in_vain += 1
        self.exhausted = self.exhausted or self._measured_in_vain >= MAX_FRUITLESS
        return Decision.STOP

    def _copy_measured(self, number: int, earlier: TrialRecord) -> None:
        """What was measured of a network holds for another training of it."""
        if earlier.is_measured:
            self._describe_measured(
                number, earlier.latency_ms, earlier.peak_memory_mb, earlier.measured_on
            )

    def _describe_measured(
        self,
        number: int,
        latency_ms: float | None,
        peak_memory_mb: float | None,
        measured_on: str,
    ) -> None:
        facts = {
            "latency_ms": latency_ms,
            "peak_memory_mb": peak_memory_mb,
            "measured_on": measured_on,
        }
        self.store.describe(number, "measured", facts)
        self._update(number, **facts)

    def _values(self, number: int) -> tuple[float, ...]:
        """What the study holds of a complete trial: top-1, then the costs."""
        trial = self._trials[number]
        return (trial.top1 or 0.0, *trial.costs(self.costs))

    def report(self, number: int, epoch: int, top1: float) -> Decision:
        """Take the accuracy after `epoch` (from 1) and say whether to go on."""
        trial = self._trials[number]
        curve = (*trial.curve[: epoch - 1], round(top1, 4))
        self.store.describe(number, "curve", list(curve))
        self._update(number, curve=curve)
        self._listener("epoch", self._trials[number])
        if epoch >= self.epochs or self.pruner is None or trial.replicate_of is not None:
            return Decision.CONTINUE
        candidates = (t for t in self._trials.values() if t.replicate_of is None)
        others = [t for t in candidates if t.curve and t.number != number]
        stop = self.pruner.should_stop(self._trials[number], others)
        return Decision.STOP if stop else Decision.CONTINUE

    def finish(self, number: int, *, seconds: float, device: str) -> TrialRecord:
        """End a training that ran to its last epoch or was stopped by `report`."""
        trial = self._trials[number]
        result: dict[str, Any] = {"seconds": round(seconds, 3), "device": device}
        if trial.epochs < self.epochs:
            return self._end(number, Outcome.STOPPED, **result)
        assert trial.top1 is not None
        return self._end(number, Outcome.COMPLETE, self._values(number), **result)

    def fail(self, number: int, outcome: Outcome, error: str, **result: Any) -> TrialRecord:
        """End a training that did not reach its end: `failed`, `diverged`, `timeout` or `oom`.

        It is not tried again, but for the first `oom`: that may be the fault of others on the
        device, so it is trained again, alone, when nothing else is left to do.
        """
        if outcome is Outcome.OOM and number not in self._alone:
            self.store.describe(number, "alone", error)
            self._alone.add(number)
            self._release(number)
            self._queue_of(number).append(number)
            return self._trials[number]
        return self._end(number, outcome, error=error, **result)

    def interrupt(self, number: int, reason: str) -> None:
        """A worker or node was lost: train again from the start, at most `MAX_RETRIES` times."""
        self._release(number)
        self._retries[number] = self._retries.get(number, 0) + 1
        if self._retries[number] > MAX_RETRIES:
            error = f"lost {self._retries[number]} times: {reason}"
            self._end(number, Outcome.FAILED, error=error)
        else:
            self._queue_of(number).append(number)

    def _queue_of(self, number: int) -> deque[int]:
        """Where a training waits that has to be made again."""
        if self._trials[number].replicate_of is not None:
            return self._again
        return self._aside if number in self._alone else self._requeued

    def _release(self, number: int) -> None:
        """Trial `number` is no longer in training."""
        self._in_flight.discard(number)
        self._update(number, gpu_seconds=round(self._meter.end(number), 3))

    def _pick(self) -> int | None:
        """What is trained next: a trial, or a replicate once all trials have ended; or None."""
        number = self._pick_trial()
        if number is None and self._are_trials_over():
            number = self._pick_replicate()
        return number

    def _pick_trial(self) -> int | None:
        """What was lost, what is new, what has to be alone; or None."""
        if self._num_ended + self._num_trials_in_flight >= self.num_trials:
            return None
        if self._requeued:
            return self._requeued.popleft()
        if self._may_draw():
            number = self._draw()
            if number is not None:
                return number
            self.exhausted = True
        if self._aside and self._in_flight <= self._alone:
            return self._aside.popleft()
        return None

    def _pick_replicate(self) -> int | None:
        """What was lost, the next network in need, what has to be alone; or None."""
        if self._again and (self._again[0] not in self._alone or self._in_flight <= self._alone):
            return self._again.popleft()
        original = self._replication.next(self.trials)
        return None if original is None else self._replicate(self._trials[original])

    def _replicate(self, original: TrialRecord) -> int:
        """Enter one more training of a network, with the next of its seeds."""
        earlier = sum(t.replicate_of == original.number for t in self._trials.values())
        seed = derive_seed(self.seed, original.key, earlier + 1)
        self.store.study.sampler = self._random  # has nothing to say: all is given
        again = Candidate("", original.params, original.key)
        _, number = self._suggest(again, seed=seed, replicate_of=original.number)
        self._copy_measured(number, original)
        self.store.begin(number)
        return number

    @property
    def _num_trials_in_flight(self) -> int:
        return sum(self._trials[number].replicate_of is None for number in self._in_flight)

    def _may_draw(self) -> bool:
        waiting = self._num_trials_in_flight + len(self._aside)
        return not self.exhausted and self._num_ended + waiting < self.num_trials

    def _is_trial_left(self) -> bool:
        if self._requeued or self._aside:
            return self._num_ended < self.num_trials
        return self._may_draw()

    def _are_trials_over(self) -> bool:
        return not self._is_trial_left() and not self._num_trials_in_flight

    def _is_replicate_left(self) -> bool:
        return bool(self._again) or self._replication.next(self.trials) is not None

    def _is_work_left(self) -> bool:
        return self._is_trial_left() or self._is_replicate_left()

    def _draw(self) -> int | None:
        """A new network within the limits, as a trial number; None when none is found."""
        while self._first:
            candidate = self._first.popleft()
            if candidate.key not in self._by_key:
                outcome, number = self._draw_once(candidate)
                if outcome is Outcome.RUNNING:
                    return number
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

    def _draw_once(self, candidate: Candidate | None = None) -> tuple[Outcome, int]:
        outcome, number = self._suggest(candidate)
        if outcome is Outcome.RUNNING:
            outcome = self._admit(number)
        if outcome is Outcome.RUNNING:
            self.store.begin(number)
        return outcome, number

    def _suggest(
        self,
        candidate: Candidate | None,
        seed: int | None = None,
        taken: bool = False,
        replicate_of: int | None = None,
    ) -> tuple[Outcome, int]:
        """A network, described and priced, from the sampler or the one that is given."""
        trial = self.store.ask(None if candidate is None else candidate.params)
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
            "seed": derive_seed(self.seed, config.key) if seed is None else seed,
        }
        if candidate is not None:
            network |= {"origin": candidate.origin, "taken": taken}
        if replicate_of is not None:
            network["replicate_of"] = replicate_of
        self.store.describe(number, "network", network)
        self._update(number, params=dict(trial.params), **network)
        return Outcome.RUNNING, number

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
            values = self._values(original)
        return self._end(number, Outcome.DUPLICATE, values, duplicate_of=original)

    def _end(
        self,
        number: int,
        outcome: Outcome,
        values: tuple[float, ...] | None = None,
        event: str = "end",
        **result: Any,
    ) -> TrialRecord:
        gpu_seconds = round(self._meter.end(number), 3)
        if gpu_seconds:
            result["gpu_seconds"] = gpu_seconds
        self.store.tell(number, outcome, values, **result)
        self._in_flight.discard(number)
        self._update(number, outcome=outcome, **result)
        self._num_ended += self._trials[number].is_ended_here
        self._listener(event, self._trials[number])
        return self._trials[number]

    def _update(self, number: int, **changes: Any) -> None:
        self._trials[number] = replace(self._trials[number], **changes)

    def _job(self, number: int) -> Job:
        trial = self._trials[number]
        config = validate(ModelConfig, dict(trial.config))
        again = trial.replicate_of is not None
        return Job(number, config, trial.seed, alone=number in self._alone, again=again)

    def _take_up(self) -> None:
        """Go on where an earlier driver ended, at whatever moment that was."""
        for trial in self.trials:
            self._listener("known", trial)
            if trial.outcome is not Outcome.RUNNING:
                continue
            if not trial.key:
                error = "the driver ended while this candidate was being drawn"
                self._end(trial.number, Outcome.REFUSED, error=error)
            elif trial.replicate_of is not None or self._admit(trial.number) is Outcome.RUNNING:
                self._alone |= {trial.number} & self.store.alone
                self._queue_of(trial.number).append(trial.number)


def _owns_key(trial: TrialRecord) -> bool:
    """Whether later draws of the same network are duplicates of this ended trial."""
    is_measured = trial.outcome is Outcome.REFUSED and trial.is_measured
    return trial.replicate_of is None and (trial.outcome.is_trial or is_measured)
