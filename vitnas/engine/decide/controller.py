"""Decides what is trained next, what is stopped, and what is written down. No Ray, no torch.

A back end gets a job from `next()`. If the space needs costs on the device, it passes them to
`measured()`. It passes the accuracy after every epoch to `report()`, and ends the job with
`finish`, `fail` or `interrupt`. Only the controller decides on limits, duplicates, pruning and
retries. Every decision is in the study before the call returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from vitnas.config.space import SearchSpace
from vitnas.cost.limits import over_limits
from vitnas.engine.decide.budget import Meter
from vitnas.engine.decide.candidates import Candidates
from vitnas.engine.decide.job import Decision, Job
from vitnas.engine.decide.ledger import Ledger
from vitnas.engine.decide.locate import Candidate
from vitnas.engine.decide.rules import Rules
from vitnas.engine.decide.take_over import take_over
from vitnas.engine.samplers import SamplerName
from vitnas.engine.store.study import RunStore
from vitnas.engine.watch.watcher import Listener
from vitnas.records import Outcome, TrialRecord
from vitnas.seeds import derive_seed

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

MAX_RETRIES = 3
MAX_IN_VAIN = 300  # networks that were measured and then refused, in a row


@dataclass(frozen=True)
class _Waiting:
    """Trainings that have to be made again: lost ones at once, those that were out of memory when
    nothing else is left to do, alone."""

    lost: deque[int] = field(default_factory=deque)
    alone: deque[int] = field(default_factory=deque)

    def __bool__(self) -> bool:
        return bool(self.lost or self.alone)


class Controller:
    """The one place where a search is steered.

    Args:
        store: the run's study.
        space: where networks are drawn from, and how long a training is.
        rules: by what it decides.
        listener: told of every change; for displays.
        first: networks to train before the sampler proposes any.

    Attributes:
        epochs: length of a full training.
        costs: those among the objectives.
        exhausted_by: why no further network is drawn: every network of the space is known, or
            many in a row were known or outside the limits; None while they are drawn.
    """

    def __init__(
        self,
        store: RunStore,
        space: SearchSpace,
        rules: Rules,
        *,
        listener: Listener | None = None,
        first: Iterable[Candidate] = (),
    ) -> None:
        self.store, self.space, self.rules = store, space, rules
        self.epochs, self.costs = space.config.proxy.epochs, space.config.objectives.costs
        self.exhausted_by: str | None = None
        self._measured_in_vain = 0
        self._in_flight: set[int] = set()
        self._times_lost: dict[int, int] = {}
        self._alone: set[int] = set()
        self._trials_waiting, self._replicates_waiting = _Waiting(), _Waiting()
        self._draining = False
        self._ledger = Ledger(store, space, rules.seed, listener)
        self._meter = Meter(rules.budget, sum(trial.gpu_seconds for trial in self.trials))
        session = int(store.attrs.get("num_sessions", 0))
        self._candidates = Candidates(
            self._ledger,
            space,
            self._sampler(rules.sampler, "session", session),
            self._sampler("random", "random", session),
            first,
        )
        self._take_up()
        store.set("num_sessions", session + 1)

    def _sampler(self, name: SamplerName, *purpose: str | int) -> BaseSampler:
        return self.rules.samplers(name, derive_seed(self.rules.seed, *purpose), self.space)

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """Every candidate so far, by number."""
        return self._ledger.trials

    @property
    def num_ended(self) -> int:
        """Trainings started and ended, those of earlier sessions included."""
        return self._ledger.num_ended

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
        if self.num_ended >= self.rules.num_trials:
            return self.stopped_by if self._is_replicate_left() else None
        if self.exhausted_by is not None and not self._is_work_left():
            return self.exhausted_by
        return self.stopped_by

    @property
    def is_interrupted(self) -> bool:
        """Whether `drain` has left something to do."""
        return self._draining and self.cut_short_by == "interrupted"

    def drain(self) -> None:
        """Start no more trainings; running ones continue to their end."""
        self._draining = True

    def next(self) -> Job | None:
        """The next training, or None when no more are to be started now."""
        number = None if self.stopped_by else self._pick()
        if number is None:
            return None
        self._in_flight.add(number)
        trial = self._ledger.start(number)
        return Job(
            number,
            trial.network,
            trial.seed,
            alone=number in self._alone,
            again=trial.replicate_of is not None,
        )

    def began(self, number: int) -> None:
        """The training of trial `number` occupies its device from now."""
        self._meter.begin(number, alone=number in self._alone)

    def elapsed(self, number: int) -> float:
        """Seconds since `began`."""
        return self._meter.elapsed(number)

    def take(
        self, candidate: Candidate, earlier: TrialRecord, replicates: Iterable[TrialRecord] = ()
    ) -> int | None:
        """Take over what another run found of a network, as a trial of this one.

        Args:
            candidate: the network.
            earlier: the other run's trial.
            replicates: that trial's; those that did not reach their end, too, so that none is made
                twice.

        Returns:
            Its number here, also where an earlier session took it over; None where the network is
            known from elsewhere, or where it was not measured what this space has to know or is
            over a limit.
        """
        config = self.space.config
        if not earlier.measured.keys() >= set(config.measured):
            return None
        return take_over(self._ledger, config.limits, candidate, earlier, replicates)

    def measured(self, number: int, measured: Mapping[str, float], measured_on: str) -> Decision:
        """Take what a network costs on its device, before it is trained there; STOP: it is refused.

        Args:
            number: of the trial.
            measured, measured_on: see `TrialRecord`.
        """
        trial = self._ledger.measured(number, measured, measured_on)
        problem = over_limits(trial, self.space.config.limits)
        if problem is None:
            self._measured_in_vain = 0
            return Decision.CONTINUE
        self._end(number, Outcome.REFUSED, error=problem, device=measured_on)
        self._measured_in_vain += 1
        if self._measured_in_vain >= MAX_IN_VAIN:
            self.exhausted_by = f"{MAX_IN_VAIN} networks in a row were measured outside the limits"
        return Decision.STOP

    def report(self, number: int, epoch: int, top1: float) -> Decision:
        """Take the accuracy after `epoch` (from 1) and say whether to continue."""
        trial = self._ledger.epoch(number, epoch, top1)
        if epoch >= self.epochs or self.rules.pruner is None or trial.replicate_of is not None:
            return Decision.CONTINUE
        candidates = (t for t in self.trials if t.replicate_of is None)
        others = [t for t in candidates if t.curve and t.number != number]
        stop = self.rules.pruner.should_stop(trial, others)
        return Decision.STOP if stop else Decision.CONTINUE

    def finish(
        self, number: int, *, seconds: float, device: str, float_top1: float | None = None
    ) -> TrialRecord:
        """End a training that ran to its last epoch or was stopped by `report`."""
        whole = self._ledger[number].epochs >= self.epochs
        outcome = Outcome.COMPLETE if whole else Outcome.STOPPED
        result = {} if float_top1 is None else {"float_top1": round(float_top1, 4)}
        return self._end(number, outcome, seconds=round(seconds, 3), device=device, **result)

    def fail(self, number: int, outcome: Outcome, error: str, **result: Any) -> TrialRecord:
        """End a training that did not reach its end: `failed`, `diverged`, `timeout` or `oom`.

        Only the first `oom` is retried: other trainings on the device may be the cause. So it is
        trained again, alone, when there is nothing else to do.
        """
        if outcome is Outcome.OOM and number not in self._alone:
            self._ledger.alone(number, error)
            self._alone.add(number)
            self._release(number)
            self._wait(number)
            return self._ledger[number]
        return self._end(number, outcome, error=error, **result)

    def interrupt(self, number: int, reason: str) -> None:
        """A worker or node was lost: train again from the start, at most `MAX_RETRIES` times."""
        self._release(number)
        times = self._times_lost[number] = self._times_lost.get(number, 0) + 1
        if times > MAX_RETRIES:
            self._end(number, Outcome.FAILED, error=f"lost {times} times: {reason}")
        else:
            self._wait(number)

    def _wait(self, number: int) -> None:
        """Trial `number` has to be trained again."""
        again = self._ledger[number].replicate_of is not None
        waiting = self._replicates_waiting if again else self._trials_waiting
        (waiting.alone if number in self._alone else waiting.lost).append(number)

    def _release(self, number: int) -> None:
        """Trial `number` is no longer in training."""
        self._in_flight.discard(number)
        self._ledger.spent(number, round(self._meter.end(number), 3))

    def _end(self, number: int, outcome: Outcome, **result: Any) -> TrialRecord:
        """Trial `number` has ended."""
        gpu_seconds = round(self._meter.end(number), 3)
        if gpu_seconds:
            result["gpu_seconds"] = gpu_seconds
        trial = self._ledger.end(number, outcome, **result)
        self._in_flight.discard(number)
        return trial

    def _pick(self) -> int | None:
        """What is trained next: a trial, or a replicate once all trials have ended; or None."""
        if self.num_ended + self._num_trials_in_flight < self.rules.num_trials:
            number = self._pick_from(self._trials_waiting, self._pick_new)
            if number is not None:
                return number
        if self._is_trial_left() or self._num_trials_in_flight:
            return None
        return self._pick_from(self._replicates_waiting, self._pick_replicate)

    def _pick_from(self, waiting: _Waiting, new: Callable[[], int | None]) -> int | None:
        """What was lost, what is new, what has to be alone; or None."""
        if waiting.lost:
            return waiting.lost.popleft()
        number = new()
        if number is None and waiting.alone and self._may_be_alone():
            return waiting.alone.popleft()
        return number

    def _may_be_alone(self) -> bool:
        """Whether a training would have its device for itself: a whole GPU is held for it, and on
        the CPU nothing else trains."""
        are_alone = self._in_flight <= self._alone
        return are_alone and (not self._in_flight or self.rules.budget.gpus > 0)

    def _pick_new(self) -> int | None:
        if not self._may_draw():
            return None
        number = self._candidates.draw()
        self.exhausted_by = self._candidates.ended_by if number is None else None
        return number

    def _pick_replicate(self) -> int | None:
        """One more training of the network in need, with the next of its seeds."""
        number = self.rules.replication.next(self.trials)
        if number is None:
            return None
        original = self._ledger[number]
        made = [trial.seed for trial in self.trials if trial.replicate_of == number]
        seeds = (derive_seed(self.rules.seed, original.key, n) for n in count(len(made) + 1))
        # a run that this one started from may lack a replicate and have a later one
        return self._candidates.repeat(original, next(seed for seed in seeds if seed not in made))

    @property
    def _num_trials_in_flight(self) -> int:
        return sum(self._ledger[number].replicate_of is None for number in self._in_flight)

    def _may_draw(self) -> bool:
        waiting = self._num_trials_in_flight + len(self._trials_waiting.alone)
        return self.exhausted_by is None and self.num_ended + waiting < self.rules.num_trials

    def _is_trial_left(self) -> bool:
        if self._trials_waiting:
            return self.num_ended < self.rules.num_trials
        return self._may_draw()

    def _is_replicate_left(self) -> bool:
        is_waiting = bool(self._replicates_waiting)
        return is_waiting or self.rules.replication.next(self.trials) is not None

    def _is_work_left(self) -> bool:
        return self._is_trial_left() or self._is_replicate_left()

    def _take_up(self) -> None:
        """Resume where an earlier driver ended, at any moment."""
        for trial in self.trials:
            if trial.outcome is not Outcome.RUNNING:
                continue
            if not trial.key:
                error = "the driver ended while this candidate was being drawn"
                self._end(trial.number, Outcome.REFUSED, error=error)
            elif (
                trial.replicate_of is not None
                or self._candidates.admit(trial).outcome is Outcome.RUNNING
            ):
                self._alone |= {trial.number} & self.store.alone
                self._wait(trial.number)
