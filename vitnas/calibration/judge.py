"""From the answers of a plan's trainings to what they say of each proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from vitnas.calibration.agreement import (
    LEAST_NETWORKS,
    Array,
    Judged,
    Networks,
    cheapest_as_good,
)
from vitnas.calibration.plan import CalibrationPlan, PlannedNetwork
from vitnas.calibration.result import Calibration, Kind, Member, ProxyFigures
from vitnas.engine.batch.request import Answer, Request
from vitnas.errors import RunError
from vitnas.records import Outcome
from vitnas.sessions import Data

Get = Callable[[Request], "Answer | None"]
AZ_PARTS = ("az_expressivity", "az_progressivity", "az_trainability")
"""Scores that `az_nas` puts together, with FLOPs."""


@dataclass(frozen=True)
class _Candidate:
    """A proxy before it is judged.

    Attributes:
        name, kind: as of `ProxyFigures`.
        seconds: for one network, the mean.
        pairs: see `Networks.judge`.
    """

    name: str
    kind: Kind
    seconds: float
    pairs: Sequence[tuple[Array, Array]]

    @property
    def missing(self) -> int:
        return int(np.isnan(np.mean([score for score, _ in self.pairs], axis=0)).sum())


def judge(plan: CalibrationPlan, get: Get, space: dict[str, Any], data: Data) -> Calibration:
    """Judge every proxy of a plan whose trainings have all ended.

    Args:
        plan: what was trained.
        get: the answer to a request.
        space: the tree of the space.
        data: what was trained on.

    Raises:
        RunError: fewer than four networks were trained long to the end.
    """
    kept = [network for network in plan.networks if all(_long(plan, get, network))]
    if len(kept) < LEAST_NETWORKS:
        raise RunError(
            f"{len(kept)} of {len(plan.networks)} networks were trained long to the end, and a "
            f"ranking takes {LEAST_NETWORKS}; the first error: {_error(plan, get)}"
        )
    results = _Results(plan, get, kept)
    networks = Networks([network.flops for network in kept])
    judged = {one.name: (one, networks.judge(one.pairs)) for one in results.candidates()}
    found = {name: (one.seconds, figures) for name, (one, figures) in judged.items()}
    sizes = [name for name, (one, _) in judged.items() if one.kind == "size"]
    best, cheapest = cheapest_as_good(found, sizes)
    ceiling = networks.judge(results.ceiling)
    return Calibration(
        space=space,
        data=data,
        long_epochs=plan.long.epochs,
        seeds=plan.seeds,
        networks=tuple(results.members()),
        lost=len(plan.networks) - len(kept),
        bins=len(networks.bins),
        ceiling_overall=ceiling.overall,
        ceiling_within=ceiling.within,
        proxies=tuple(
            _figures(one, figures, results.long_seconds)
            for one, figures in sorted(judged.values(), key=lambda pair: pair[0].seconds)
        ),
        best=best,
        cheapest=cheapest,
    )


class _Results:
    """What the networks reached that were trained long."""

    def __init__(self, plan: CalibrationPlan, get: Get, kept: Sequence[PlannedNetwork]) -> None:
        self._plan, self._get, self._kept = plan, get, kept
        answers = [[_ended(one) for one in _long(plan, get, network)] for network in kept]
        self._answers = [list(of_seed) for of_seed in zip(*answers, strict=True)]
        self._final = np.array([[one.curve[-1] for one in row] for row in self._answers])
        self.long_seconds = float(np.mean([one.seconds for row in answers for one in row]))
        self._truth = self._final.mean(axis=0)

    def members(self) -> Iterator[Member]:
        for network, top1 in zip(self._kept, self._final.T.tolist(), strict=True):
            tree = network.config.to_tree()
            yield Member(
                model=tree, flops=network.flops, num_params=network.num_params, top1=tuple(top1)
            )

    @property
    def ceiling(self) -> list[tuple[Array, Array]]:
        """Each long training against the mean of the others."""
        return [(row, self._others(seed)) for seed, row in enumerate(self._final)]

    def candidates(self) -> Iterator[_Candidate]:
        flops, params = np.array([(n.flops, n.num_params) for n in self._kept], dtype=float).T
        yield _Candidate("FLOPs", "size", 0.0, [(flops, self._truth)])
        yield _Candidate("parameters", "size", 0.0, [(params, self._truth)])
        yield from self._scores()
        yield self._of_long(1, "first epoch", "loss of epoch 1", lambda one: -one.losses[0])
        for epochs in self._cuts():
            reached = partial(_top1_at, epochs)
            yield self._of_long(epochs, "cut", f"long, cut at {epochs}", reached)
        yield from self._trainings()

    def _scores(self) -> Iterator[_Candidate]:
        answers = [self._get(self._plan.score_request(network)) for network in self._kept]
        found = [{} if one is None else one.scores for one in answers]
        scored: dict[str, tuple[Array, float]] = {}
        for name in dict.fromkeys(name for scores in found for name in scores):
            values, seconds = np.array([scores.get(name, (np.nan, np.nan)) for scores in found]).T
            scored[name] = values, float(np.nanmean(seconds))
        if scored.keys() >= set(AZ_PARTS):
            parts, times = zip(*(scored[name] for name in AZ_PARTS), strict=True)
            flops = np.array([network.flops for network in self._kept], dtype=float)
            scored["az_nas"] = az_nas([*parts, flops]), sum(times)
        for name, (values, seconds) in scored.items():
            yield _Candidate(name, "score", seconds, [(values, self._truth)])

    def _cuts(self) -> list[int]:
        """Epochs of the own trainings that a long one passes, so that both can be compared."""
        asked = {one.proxy.epochs for one in self._plan.fidelities}
        return sorted(epochs for epochs in asked if epochs < self._plan.long.epochs)

    def _of_long(
        self, epochs: int, kind: Kind, name: str, value: Callable[[Answer], float]
    ) -> _Candidate:
        """Something that a long training shows after so many epochs, against the other seeds."""
        pairs = [
            (np.array([value(one) for one in row]), self._others(seed))
            for seed, row in enumerate(self._answers)
        ]
        return _Candidate(name, kind, self.long_seconds * epochs / self._plan.long.epochs, pairs)

    def _trainings(self) -> Iterator[_Candidate]:
        for fidelity in self._plan.fidelities:
            answers = [self._get(fidelity.request(network.config)) for network in self._kept]
            seconds = float(np.mean([0.0 if one is None else one.seconds for one in answers]))
            top1, likelihood = np.array([_reached(one) for one in answers]).T
            yield _Candidate(fidelity.name, "training", seconds, [(top1, self._truth)])
            name = f"{fidelity.name}, log-likelihood"
            if not np.isnan(likelihood).all():  # trainings of earlier versions have none
                yield _Candidate(name, "likelihood", seconds, [(likelihood, self._truth)])

    def _others(self, seed: int) -> Array:
        mean: Array = np.delete(self._final, seed, axis=0).mean(axis=0)
        return mean


def az_nas(parts: Sequence[Array]) -> Array:
    """The sum over parts of log(rank / n), where the best of the n networks has rank n.

    A network that is far behind in one part loses more than it can gain in another one. Ties share
    the mean of their ranks; a network without a part has no score.

    Source: Lee and Ham, "AZ-NAS", CVPR 2024. The parts are `AZ_PARTS` and FLOPs.
    """
    from scipy.stats import rankdata

    logs = [np.log(rankdata(part, nan_policy="omit") / len(part)) for part in parts]
    together: Array = np.sum(logs, axis=0)
    return together


def _figures(one: _Candidate, judged: Judged, long_seconds: float) -> ProxyFigures:
    return ProxyFigures(
        name=one.name,
        kind=one.kind,
        cost=one.seconds / long_seconds if long_seconds else 0.0,
        overall=judged.overall,
        within=judged.within,
        missing=one.missing,
    )


def _long(plan: CalibrationPlan, get: Get, network: PlannedNetwork) -> list[Answer | None]:
    """The long trainings of a network; None for one that did not reach its end."""
    answers = [get(plan.long_request(network, number)) for number in range(plan.seeds)]
    return [one if one is not None and one.top1 is not None else None for one in answers]


def _reached(answer: Answer | None) -> tuple[float, float]:
    """Top-1 and log-likelihood on the scoring split at the end of a training; NaN for none."""
    if answer is None or answer.top1 is None:
        return np.nan, np.nan
    return answer.top1, (answer.log_likelihoods or (np.nan,))[-1]


def _top1_at(epoch: int, answer: Answer) -> float:
    return answer.curve[epoch - 1]


def _ended(answer: Answer | None) -> Answer:
    assert answer is not None
    return answer


def _error(plan: CalibrationPlan, get: Get) -> str:
    """The first error of a long training."""
    requests = (plan.long_request(n, k) for n in plan.networks for k in range(plan.seeds))
    answers = (get(request) for request in requests)
    failed = (one for one in answers if one is not None and one.outcome is not Outcome.COMPLETE)
    return next((one.error or one.outcome.value for one in failed), "none")
