"""The sampler that knows what a network costs: expected hypervolume improvement, costs exact."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from math import log, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from optuna.samplers import RandomSampler

from vitnas.config.costs import COSTS, DEFAULT_COSTS, EXACT, MEASURED, cost_of, log_cost
from vitnas.config.objectives import Bounds, Limits
from vitnas.cost.closed_form import closed_form
from vitnas.engine.pruning.curves import CurveModel
from vitnas.engine.samplers.gain import cut_budgets, expected_gain
from vitnas.engine.samplers.planned import PlannedSampler
from vitnas.engine.samplers.pool import CandidatePool, Mixers, Proposal, mixers_of
from vitnas.engine.store.stored import as_record
from vitnas.records import Outcome, TrialRecord, averaged, front_of
from vitnas.surrogate.features import Encoder, facts_of
from vitnas.surrogate.odds import logit, percent
from vitnas.surrogate.process import Process, Scales, choose_scales

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

_Array = npt.NDArray[np.float64]
_BAD = (Outcome.DIVERGED, Outcome.OOM, Outcome.TIMEOUT)
_INDUCING, _SCALED_BY = 256, 160
_PLAIN = 4
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class EHVISampler(PlannedSampler):
    """Proposes the network with the largest expected gain in hypervolume.

    Only the accuracy of a candidate is unknown before training. Candidates come from a pool with
    known costs. A Gaussian process over configuration and costs predicts the accuracy of each. The
    candidate with the largest expected gain in hypervolume (top-1 against the logarithms of the
    costs) is proposed. A separate process over the same columns predicts a measured cost, and its
    mean is taken as known. Stopped trials count, too: finished curves predict the end of theirs,
    with more uncertainty.

    The gain is counted over the networks known so far, each with its expected accuracy and not with
    its score. With few scoring images, a lucky score of a cheap network would otherwise keep better
    and more expensive ones from being proposed (Daulton et al. 2021, NeurIPS, on noisy expected
    hypervolume improvement, which averages over draws of these accuracies). A running trial counts
    in the same way, so that parallel workers propose different networks.

    The first proposal is the cheapest network: it is on the front with any accuracy. The next four
    are random networks that are alike in all stages and have as few different mixers as the space
    allows, which take turns: the model learns early what each mixer is worth everywhere, where a
    few unlucky mixtures would keep it from asking. Until `startup` trials are known, other
    proposals are random. Then every third proposal is, of the networks with a mixer in a stage
    where no network has had it, the one with the largest expected gain, until there is none left: a
    mixer that some stages lack is in no network that is alike in all stages, and the model expects
    little of what it does not know. It is one from the upper half of the front's range of log
    costs, if there is one: a mixer may be worth nothing in a very cheap network. Spaces other than
    the pool's are sampled at random.

    Args:
        pool: where candidates come from.
        seed: of what is random. Proposals follow from the seed and the study.
        startup: trials before the model is asked.
        untried_every: every so many-th proposal has a mixer that its stage has not had; 0: none.
        costs: those among the objectives.
        limits: on measured costs; networks that are expected to be outside are proposed last.
    """

    def __init__(
        self,
        pool: CandidatePool,
        seed: int | None = None,
        *,
        startup: int = 3,
        untried_every: int = 3,
        costs: Sequence[str] = DEFAULT_COSTS,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(RandomSampler(seed))
        self._pool, self._startup, self._costs = pool, startup, costs
        self._untried_every = untried_every
        self._random = np.random.default_rng(seed)
        self._study: Study | None = None
        self._ended: dict[int, TrialRecord] = {}
        self._model = _Model(pool, costs, limits or Limits())
        self._lock = threading.Lock()

    def reseed_rng(self) -> None:
        self._random = np.random.default_rng()
        super().reseed_rng()

    def choose(self, study: Study, trial: FrozenTrial) -> Proposal | None:
        with self._lock, _thread_pools().limit(limits=1, user_api="blas"):
            return self._best(self._read(study, trial))

    def _read(self, study: Study, trial: FrozenTrial) -> list[TrialRecord]:
        """The networks that the study knows, without the one of `trial`, with their mean top-1."""
        if study is not self._study:
            self._study, self._ended = study, {}
        records = []
        for stored in study.get_trials(deepcopy=False):
            record = self._ended.get(stored.number)
            if record is None and stored.number != trial.number:
                record = as_record(stored)
                if stored.state.is_finished():
                    self._ended[stored.number] = record
            if record is not None and record.key and _is_known(record):
                records.append(record)
        return list(averaged(records))

    def _best(self, records: Sequence[TrialRecord]) -> Proposal | None:
        offered = self._pool.offer({t.key for t in records}, _parents(records, self._costs))
        if not offered:
            return None
        if not records:
            return min(offered, key=lambda proposal: (self._exact_cost(proposal), proposal.key))
        if len(records) <= _PLAIN and (plain := [p for p in offered if p.is_plain]):
            return self._any(_in_turn(plain, records))
        if sum(map(_is_seen, records)) < self._startup:
            return self._any(offered)
        gain = self._model.gain(records, offered)
        order = np.argsort(-gain, kind="stable")
        ranked: list[Proposal] = [offered[index] for index in order.tolist()]
        self._pool.keep(ranked)
        if self._untried_every and len(records) % self._untried_every == 0:
            tries = list(_untried(ranked[: int((gain >= 0).sum())], records))
            least = self._middle_cost(records)
            above = (one for one in tries if self._exact_cost(one) >= least)
            return next(above, next(iter(tries), ranked[0]))
        return ranked[0]

    def _exact_cost(self, network: Proposal | TrialRecord) -> float:
        """The first of the costs that is known without measuring, else FLOPs."""
        cost = next((cost for cost in self._costs if cost in EXACT), "flops")
        return float(getattr(network, cost))

    def _middle_cost(self, records: Sequence[TrialRecord]) -> float:
        """The middle of the front's range of log costs; 0 without a front."""
        costs = [self._exact_cost(member) for member in front_of(records, self._costs)]
        return sqrt(min(costs) * max(costs)) if costs else 0.0

    def _any(self, offered: Sequence[Proposal]) -> Proposal:
        return offered[int(self._random.integers(len(offered)))]


@cache
def _thread_pools() -> Any:
    """Matrices of a few hundred rows are slower with several threads where trainings keep the
    cores busy, and proposals must not depend on how many there are."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass(frozen=True)
class _Fit:
    """The fitted model: a process over standardised log-odds, and their mean and deviation."""

    centre: float
    spread: float
    process: Process
    num_ended: int

    def top1(self, rows: _Array, nodes: _Array) -> _Array:
        """Top-1 in percent of each row of features at so many deviations from the mean."""
        mean, deviation = self.process.predict(rows)
        return percent(self.centre + self.spread * (mean[:, None] + deviation[:, None] * nodes))


class _Model:
    """Predicts a candidate's accuracy, costs and gain over the front.

    The model is fitted again when one in a hundred of the ended trials is new (with fewer than two
    hundred: after every new one), its scales when one in ten is new. The front is always up to
    date.
    """

    def __init__(self, pool: CandidatePool, costs: Sequence[str], limits: Limits) -> None:
        self._pool, self._costs = pool, costs
        self._bounds = {
            name: getattr(limits, name) for name in MEASURED if getattr(limits, name) != Bounds()
        }
        self._encoder: Encoder | None = None
        self._rows: dict[str, _Array] = {}
        self._scales, self._scaled_at = Scales(), 0
        self._fit: _Fit | None = None

    def gain(self, records: Sequence[TrialRecord], offered: Sequence[Proposal]) -> _Array:
        """Expected gain in hypervolume of each of `offered`; below 0 for what is expected to be
        outside the limits, the less the farther."""
        seen = [t for t in records if _is_seen(t)]
        num_ended = sum(t.outcome is not Outcome.RUNNING for t in seen)
        if self._fit is None or num_ended - self._fit.num_ended >= num_ended // 100:
            self._fit = self._learn(seen, num_ended)
        scenarios = self._fit.top1(self._encode(offered), _NODES)
        here = [t for t in records if t.outcome in (Outcome.COMPLETE, Outcome.RUNNING)]
        top1 = self._fit.top1(self._encode(here), np.zeros(1))[:, 0] if here else np.zeros(0)
        logs = {
            cost: self._log_costs(cost, records, [*here, *offered])
            for cost in dict.fromkeys((*self._costs, *self._bounds))
        }
        costs = np.stack([logs[cost] for cost in self._costs], axis=1)
        gain = _gain(costs[len(here) :], scenarios, costs[: len(here)], top1)
        outside = np.zeros(len(offered))
        for name, bounds in self._bounds.items():
            outside += _excess(COSTS[name].sign * logs[name][len(here) :], bounds)
        self._forget_others({t.key for t in records} | {p.key for p in offered})
        return np.where(outside > 0, -outside, gain)

    def _log_costs(
        self, cost: str, records: Sequence[TrialRecord], networks: Sequence[Proposal | TrialRecord]
    ) -> _Array:
        """`log_cost` of `networks`; what is expected of it by the newest of `records` where it
        has to be measured and has not been."""
        seen = [t for t in records if cost_of(t, cost) is not None][-_INDUCING:]
        if cost in EXACT or not seen:
            return np.array([log_cost(cost, cost_of(one, cost) or 0.0) for one in networks])
        x, y = self._encode(seen), np.array([log_cost(cost, *t.costs([cost])) for t in seen])
        centre, spread, certain = float(y.mean()), float(y.std()) or 1.0, np.zeros(len(y))
        targets, few = (y - centre) / spread, slice(-_SCALED_BY, None)
        scales = choose_scales(x[few], targets[few], certain[few])
        process = Process(x, targets, certain, np.arange(len(y)), scales)
        expected = centre + spread * process.predict(self._encode(networks))[0]
        measured = [cost_of(network, cost) for network in networks]
        pairs = zip(expected.tolist(), measured, strict=True)
        return np.array([mean if known is None else log_cost(cost, known) for mean, known in pairs])

    def _learn(self, seen: Sequence[TrialRecord], num_ended: int) -> _Fit:
        odds, variance = _ends(seen)
        centre, spread = float(odds.mean()), float(odds.std()) or 1.0
        x, y, extra = self._encode(seen), (odds - centre) / spread, variance / spread**2
        surest = np.argsort(extra, kind="stable")[:_INDUCING]
        if len(seen) >= 1.1 * self._scaled_at:
            few = surest[:_SCALED_BY]
            self._scales = choose_scales(x[few], y[few], extra[few])
            self._scaled_at = len(seen)
        return _Fit(centre, spread, Process(x, y, extra, surest, self._scales), num_ended)

    def _encode(self, networks: Sequence[Proposal | TrialRecord]) -> _Array:
        """Rows of features; each network's are worked out once."""
        if self._encoder is None:
            self._encoder = Encoder(proposal.facts for proposal in self._pool.sample())
        for network in networks:
            if network.key not in self._rows:
                self._rows[network.key] = self._encoder.encode([_facts(network)])[0]
        return np.stack([self._rows[network.key] for network in networks])

    def _forget_others(self, keys: Set[str]) -> None:
        """Keep rows of these networks, and of not much more: each step draws others."""
        if len(self._rows) > 2 * len(keys):
            self._rows = {key: self._rows[key] for key in keys & self._rows.keys()}


def _facts(network: Proposal | TrialRecord) -> Mapping[str, float]:
    if isinstance(network, Proposal):
        return network.facts
    config = network.network
    return facts_of(config, closed_form(config))


def _is_seen(trial: TrialRecord) -> bool:
    """Whether a trial says something about its network's accuracy."""
    return bool(trial.curve) or trial.outcome in _BAD


def _ends(seen: Sequence[TrialRecord]) -> tuple[_Array, _Array]:
    """Log-odds of the last epoch's top-1, and how uncertain each is beyond an accuracy's noise.

    A trial that diverged, ran out of memory or timed out counts as the worst trial. Very bad values
    would stretch the scale, and their exact size does not matter. So no value is further below the
    median than three times the interquartile range.
    """
    odds, variance = np.full(len(seen), np.nan), np.zeros(len(seen))
    whole = np.array([t.outcome is Outcome.COMPLETE for t in seen])
    bad = np.array([t.outcome in _BAD for t in seen])
    odds[whole] = logit([t.top1 or 0.0 for t in seen if t.outcome is Outcome.COMPLETE])
    cut = np.flatnonzero(~whole & ~bad)
    if len(cut):
        odds[cut], variance[cut] = CurveModel(seen).expect([seen[index] for index in cut.tolist()])
    odds[bad] = 0.0 if bad.all() else odds[~bad].min()
    low, middle, high = np.quantile(odds, [0.25, 0.5, 0.75])
    return np.maximum(odds, middle - 3 * (high - low)), variance


def _gain(costs: _Array, scenarios: _Array, theirs: _Array, top1: _Array) -> _Array:
    """Expected gain of candidates of log `costs` beside networks of log costs `theirs`."""
    everything = np.concatenate([costs, theirs])
    worst = everything.max(axis=0) + 0.05 * (np.ptp(everything, axis=0) + 1)
    floor, least = min(top1.tolist(), default=0.0) - 1, everything.min(axis=0)
    budgets = cut_budgets(theirs, top1, worst, floor, least)
    return expected_gain(costs, scenarios, _WEIGHTS, budgets)


def _excess(logs: _Array, bounds: Bounds) -> _Array:
    """How far logarithms lie outside of limits; 0 inside."""
    high = np.inf if bounds.max is None else log(bounds.max)
    low = log(bounds.min) if bounds.min else -np.inf
    return np.asarray(np.maximum(np.maximum(logs - high, low - logs), 0.0))


def _is_known(trial: TrialRecord) -> bool:
    """Whether a network need not be proposed again; one that was refused for its FLOPs, never
    built, may come back with other limits."""
    return trial.outcome is not Outcome.REFUSED or bool(trial.measured)


def _in_turn(plain: Sequence[Proposal], records: Sequence[TrialRecord]) -> Sequence[Proposal]:
    """Those of `plain` with the fewest different mixers; of these, those with the mixers that the
    fewest of `records` have."""
    tried = Counter(mixers_of(record.network) for record in records)
    ranks = [(len({m for stage in p.mixers for m in stage}), tried[p.mixers]) for p in plain]
    first = min(ranks)
    return [one for one, rank in zip(plain, ranks, strict=True) if rank == first]


def _untried(offered: Sequence[Proposal], records: Sequence[TrialRecord]) -> Iterator[Proposal]:
    """Those of `offered` with a mixer in a stage where none of `records` has it."""
    tried = set[tuple[int, str]]().union(*(_places(mixers_of(t.network)) for t in records))
    return (one for one in offered if not _places(one.mixers) <= tried)


def _places(mixers: Mixers) -> set[tuple[int, str]]:
    """Each mixer with the number of its stage."""
    return {(number, mixer) for number, stage in enumerate(mixers) for mixer in stage}


def _parents(records: Sequence[TrialRecord], costs: Sequence[str]) -> list[Mapping[str, Any]]:
    """Draws worth varying: those of the front."""
    members = {trial.number for trial in front_of(records, costs)}
    return [trial.params for trial in records if trial.number in members]
