"""Trials and baselines as plain values. The engine writes them, the report reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from math import nan
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from vitnas.noise import Expected

from vitnas.config.baseline import Baseline
from vitnas.config.costs import COSTS, cost_of
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig


class Outcome(str, Enum):
    """How a candidate ended. The first six cost a training and count as trials."""

    COMPLETE = "complete"  # trained to the last epoch
    STOPPED = "stopped"  # stopped early by the pruner; its accuracy is censored
    FAILED = "failed"  # an error in the code or a worker lost too often
    DIVERGED = "diverged"  # loss not finite: an outcome of the architecture
    OOM = "oom"  # device memory exhausted: an outcome of the architecture
    TIMEOUT = "timeout"  # longer than a training may take: an outcome of the architecture
    REFUSED = "refused"  # outside the limits or against a rule; never trained
    DUPLICATE = "duplicate"  # the same network as an earlier trial; answered from the study
    RUNNING = "running"  # in training, or interrupted and to be trained again

    @property
    def is_trial(self) -> bool:
        """Whether a training was started and has ended."""
        return self not in (Outcome.REFUSED, Outcome.DUPLICATE, Outcome.RUNNING)


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """A network of a run and what its training gave.

    Attributes:
        outcome: how it ended.
        flops: multiply-adds of one image, fvcore's count; 0 if unknown.
        num_params: trainable parameters; 0 if unknown.
        curve: top-1 in percent on the scoring split after each epoch.
        test_top1: top-1 in percent on the test split; None if it was not scored there.
        seconds: wall time of the training.
        ended: when it ended, a baseline's last one; seconds since 1970, None if unknown.
        seed: of the training.
        error: one line; None for a complete training.
        replicates: top-1 in percent of each complete training of it with another seed.
        test_replicates: the same on the test split, of those that were scored there.
    """

    outcome: Outcome
    flops: int = 0
    num_params: int = 0
    curve: tuple[float, ...] = ()
    test_top1: float | None = None
    seconds: float | None = None
    ended: float | None = None
    seed: int = 0
    error: str | None = None
    replicates: tuple[float, ...] = ()
    test_replicates: tuple[float, ...] = ()

    @property
    def trainings(self) -> tuple[float, ...]:
        """Top-1 in percent of its own training and of its replicates."""
        return (*self.curve[-1:], *self.replicates)

    @property
    def test_trainings(self) -> tuple[float, ...]:
        """The same on the test split, of those trainings that were scored there."""
        own = () if self.test_top1 is None else (self.test_top1,)
        return (*own, *self.test_replicates)

    @property
    def mean_test_top1(self) -> float | None:
        """Mean top-1 in percent on the test split; None if no training was scored there."""
        return fmean(self.test_trainings) if self.test_trainings else None


@dataclass(frozen=True)
class TrialRecord(TrainingRecord):
    """One candidate of a run. Front members alone are scored on the test split.

    Attributes:
        number: Optuna's trial number, unique in the run.
        config: the tree of its model file (see `ModelConfig.to_tree`).
        key: twelve hex digits, equal for two spellings of one network.
        measured: costs that were measured on a device, by name (see `vitnas.config.costs`).
        measured_on: the device that they hold for, e.g. a card's or a processor's name.
        params: what the sampler drew, by address.
        duplicate_of: number of the earlier trial with the same network.
        device: where it was trained, e.g. `cpu` or `NVIDIA H100`.
        origin: who proposed it when it was not the sampler: a model file's name, or a trial of
            another run.
        taken: whether its result is another run's, so that nothing was trained here.
        gpu_seconds: GPUs times seconds that its training and lost attempts of it took.
        started: when it was drawn, seconds since 1970; None if unknown.
        replicate_of: number of the trial whose network this is trained again with another seed;
            None for a candidate.
        float_top1: where its top-1 is that of the network in int8: that of the network as it is,
            in percent on the scoring split, of its own training; else None.
        expected: top-1 that is expected of it, from all trainings of its run; None if it is not
            known (see `Run.complete`).
    """

    number: int
    config: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    duplicate_of: int | None = None
    device: str = ""
    origin: str = ""
    taken: bool = False
    gpu_seconds: float = 0.0
    started: float | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    measured_on: str = ""
    replicate_of: int | None = None
    float_top1: float | None = None
    expected: Expected | None = None

    def __repr__(self) -> str:
        top1 = "" if self.top1 is None else f", top1={self.top1:.2f}"
        return f"TrialRecord({self.number}, {self.outcome.value}{top1}, flops={self.flops})"

    @property
    def called(self) -> str:
        """`trial 7`."""
        return f"trial {self.number}"

    @cached_property
    def network(self) -> ModelConfig:
        """The network that `config` describes.

        Raises:
            ConfigError: the configuration breaks a rule; with the trial's number.
        """
        return validate(ModelConfig, dict(self.config), file=f"trial {self.number}")

    @property
    def top1(self) -> float | None:
        """Top-1 in percent after the last epoch that was trained: the mean over its trainings."""
        return fmean(self.trainings) if self.curve else None

    @property
    def estimate(self) -> float | None:
        """Top-1 in percent by which it is ranked: the expected one, or the score if that is all."""
        return self.top1 if self.expected is None else self.expected.top1

    @property
    def epochs(self) -> int:
        """Epochs trained."""
        return len(self.curve)

    @property
    def is_ended_here(self) -> bool:
        """Whether it is one of the trials that this run was asked for, and has ended."""
        return self.outcome.is_trial and not self.taken and self.replicate_of is None

    def costs(self, names: Sequence[str]) -> tuple[float, ...]:
        """Its costs of these names; NaN where one was not measured."""
        amounts = (cost_of(self, name) for name in names)
        return tuple(nan if amount is None else float(amount) for amount in amounts)

    def minimized(self, names: Sequence[str]) -> tuple[float, ...]:
        """Its costs as numbers to keep low: negated where more is better."""
        amounts = [(COSTS[name].sign, cost_of(self, name)) for name in names]
        return tuple([nan if amount is None else sign * float(amount) for sign, amount in amounts])

    def point(self, costs: Sequence[str]) -> tuple[float, ...]:
        """Objectives to minimise: the estimate of top-1 negated, then `costs`."""
        return (-(self.estimate or 0.0), *self.minimized(costs))


@dataclass(frozen=True)
class BaselineRecord(TrainingRecord):
    """A reference network that was trained like a candidate; it is no trial.

    Attributes:
        network: what it is.
        lr: peak learning rate of its trainings; 0 if unknown.
        rates: top-1 in percent on the scoring split by each rate that it was tried at, the lowest
            first, where these are several; None for a training that did not reach its end.
    """

    network: Baseline
    lr: float = 0.0
    rates: tuple[tuple[float, float | None], ...] = ()

    @property
    def family(self) -> str:
        return self.network.family

    @property
    def width(self) -> int:
        return self.network.width

    @property
    def name(self) -> str:
        """Short, for people: `dwcnn-24`."""
        return self.network.name

    @property
    def key(self) -> str:
        """Twelve hex digits, equal for equal networks."""
        return self.network.key

    @property
    def top1(self) -> float | None:
        """Top-1 in percent after the last epoch, the mean over its trainings; None unless its own
        training has reached it."""
        is_complete = self.outcome is Outcome.COMPLETE
        return fmean(self.trainings) if self.curve and is_complete else None


_Record = TypeVar("_Record", bound=TrainingRecord)


def repeated(record: _Record, again: Iterable[TrainingRecord]) -> _Record:
    """A complete training's record with what further trainings of its network gave.

    Args:
        record: of the first training; it is returned as it is unless it is complete.
        again: the others; those that did not reach their end count in no mean.
    """
    ended = [one for one in again if one.outcome is Outcome.COMPLETE and one.curve]
    if not ended or record.outcome is not Outcome.COMPLETE:
        return record
    tests = tuple(one.test_top1 for one in ended if one.test_top1 is not None)
    scores = tuple(one.curve[-1] for one in ended)
    return replace(record, replicates=scores, test_replicates=tests)


def averaged(trials: Iterable[TrialRecord]) -> tuple[TrialRecord, ...]:
    """The candidates among `trials`; each complete one has the top-1 of its replicates."""
    again: dict[int | None, list[TrialRecord]] = {}
    for trial in trials:
        again.setdefault(trial.replicate_of, []).append(trial)
    return tuple(repeated(trial, again.get(trial.number, ())) for trial in again.get(None, ()))


def completed(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The complete candidates among `trials`, with the top-1 of their replicates."""
    return [t for t in averaged(trials) if t.outcome is Outcome.COMPLETE and t.curve]


def front_of(trials: Iterable[TrialRecord], costs: Sequence[str]) -> tuple[TrialRecord, ...]:
    """The non-dominated complete trials (estimate of top-1 up, `costs` the better way), sorted by
    the costs in turn, the best first."""
    from vitnas.pareto import front

    complete = [trial for trial in trials if trial.outcome is Outcome.COMPLETE]
    chosen = front([trial.point(costs) for trial in complete])
    members = (complete[index] for index in chosen)
    return tuple(sorted(members, key=lambda trial: (*trial.minimized(costs), trial.number)))
