"""Early stopping when the goal is accuracy against costs that are known before training.

There are two rules. At a rung (an epoch), trials are ranked by non-dominated front, so that a cheap
network competes with cheap ones; among trials of similar cost the better share continues. After any
epoch, a trial stops when a network that is trained to its end dominates even the optimistic end of
its learning curve. A trial on the front of its epoch is never stopped. Every decision is a pure
function of the curves in the study, so a resumed run decides like an uninterrupted one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import le
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vitnas.config.costs import DEFAULT_COSTS
from vitnas.engine.pruning import CONFIDENCE, PrunerName
from vitnas.engine.pruning.curves import CurveModel
from vitnas.pareto import front_ranks
from vitnas.records import Outcome, TrialRecord

Trials = Sequence[TrialRecord]


class Rule(Protocol):
    """A reason to stop a trial after the epoch it has just been through."""

    def stops(self, trial: TrialRecord, others: Trials, costs: Sequence[str]) -> bool: ...


@dataclass(frozen=True)
class ParetoPruner:
    """Stops a trial when a rule says so and it is not on the front of its epoch.

    Attributes:
        rules: asked in order.
        costs: names of those among the objectives, known before the first epoch; with top-1 they
            make two objectives or more.
    """

    rules: tuple[Rule, ...]
    costs: tuple[str, ...] = DEFAULT_COSTS

    def should_stop(self, trial: TrialRecord, others: Trials) -> bool:
        """Whether `trial` stops after the last epoch of its curve.

        Args:
            trial: with at least one epoch behind it and at least one before it.
            others: every other trial of the run, in any order.
        """
        if not _reached(others, trial.epochs) or self._is_on_front(trial, others):
            return False
        return any(rule.stops(trial, others, self.costs) for rule in self.rules)

    def _is_on_front(self, trial: TrialRecord, others: Trials) -> bool:
        mine = _point(trial, trial.epochs, self.costs)
        as_good = (t for t in _reached(others, trial.epochs) if _best(t, trial.epochs) >= -mine[0])
        peers = (_point(t, trial.epochs, self.costs) for t in as_good)
        return not any(peer != mine and all(map(le, peer, mine)) for peer in peers)


@dataclass(frozen=True)
class FrontRank:
    """Successive halving by front rank, among trials of like cost.

    Attributes:
        rungs: epochs at which a trial may be stopped; empty = never.
        keep: 1 / eta, the share of a bin that continues.
        bins: number of parts of similar size into which the trials of a rung are cut by their first
            cost. With one bin, the many cheap trials with good ranks would displace expensive ones.
        min_peers: trials that a bin needs before any trial in it is stopped.
    """

    rungs: tuple[int, ...]
    keep: float = 0.5
    bins: int = 1
    min_peers: int = 4

    def stops(self, trial: TrialRecord, others: Trials, costs: Sequence[str]) -> bool:
        epoch = trial.epochs
        peers = _reached(others, epoch)
        if epoch not in self.rungs or len(peers) < self.min_peers:
            return False
        points = np.array([_point(t, epoch, costs) for t in (trial, *peers)])
        ranks = front_ranks(points)[like_first(points[:, 1], self.bins, self.min_peers)]
        ahead = int((ranks < ranks[0]).sum())
        return ahead >= math.ceil(self.keep * len(ranks))


@dataclass(frozen=True)
class OptimisticEnd:
    """Stops a trial that cannot reach the front at its costs, with a stated confidence.

    Attributes:
        confidence: probability that a stopped trial would be dominated at its end, too, if its
            curve is like the finished ones. It needs enough finished curves: 49 for 0.98, 9 for 0.9
            (see `CurveModel.optimistic`). Before that, no trial is stopped.
        first: the first epoch after which a trial may be stopped.
    """

    confidence: float = CONFIDENCE
    first: int = 1
    _learned: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def stops(self, trial: TrialRecord, others: Trials, costs: Sequence[str]) -> bool:
        if trial.epochs < self.first:
            return False
        complete = [t for t in others if t.outcome is Outcome.COMPLETE]
        end = self._model(complete).optimistic(trial, self.confidence)
        mine = trial.minimized(costs)
        return any(t.curve[-1] >= end and all(map(le, t.minimized(costs), mine)) for t in complete)

    def _model(self, complete: list[TrialRecord]) -> CurveModel:
        """What these curves teach; kept until there are others."""
        if self._learned.get("from") != complete:
            self._learned.update({"from": complete, "model": CurveModel(complete)})
        model: CurveModel = self._learned["model"]
        return model


def like_first(costs: npt.NDArray[np.float64], bins: int, least: int) -> npt.NDArray[np.bool_]:
    """Which of `costs` are in the bin of the first one.

    Args:
        costs: n numbers.
        bins: into how many bins of like size they are cut at most.
        least: members that a bin has at least, so that few numbers are one bin.
    """
    bins = max(1, min(bins, len(costs) // max(1, least)))
    edges = np.quantile(costs, np.arange(1, bins) / bins)
    bin_of = np.searchsorted(edges, costs, side="right")
    same: npt.NDArray[np.bool_] = bin_of == bin_of[0]
    return same


def default_rungs(epochs: int) -> tuple[int, ...]:
    """Rungs at one sixth and five twelfths of the training (2 and 5 of 12); none for trainings too
    short to judge."""
    rungs = (round(epochs / 6), round(epochs * 5 / 12))
    return tuple(sorted({rung for rung in rungs if 1 <= rung < epochs})) if epochs >= 4 else ()


def make_pruner(
    name: PrunerName,
    epochs: int,
    confidence: float = CONFIDENCE,
    bins: int = 1,
    costs: tuple[str, ...] = DEFAULT_COSTS,
) -> ParetoPruner | None:
    """The pruner of that name for trainings of so many epochs; None = nothing is stopped."""
    rank, end = FrontRank(default_rungs(epochs), bins=bins), OptimisticEnd(confidence)
    rules: dict[str, tuple[Rule, ...]] = {"front": (rank,), "curve": (end,), "both": (rank, end)}
    return ParetoPruner(rules[name], costs) if name in rules else None


def _reached(trials: Trials, epoch: int) -> list[TrialRecord]:
    return [trial for trial in trials if len(trial.curve) >= epoch]


def _point(trial: TrialRecord, epoch: int, costs: Sequence[str]) -> list[float]:
    """Objectives to minimise after `epoch`; one bad epoch does not undo a better one."""
    return [-_best(trial, epoch), *trial.minimized(costs)]


def _best(trial: TrialRecord, epoch: int) -> float:
    return max(trial.curve[:epoch])
