"""What a random search of a run's space would have reached, by the model of expected top-1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitnas.config.costs import COSTS, log_costs
from vitnas.config.model import ModelConfig
from vitnas.cost.closed_form import Cost, closed_form
from vitnas.cost.limits import over_limits
from vitnas.cost.survey import random_networks
from vitnas.pareto import hypervolume
from vitnas.report.effects import is_ours, space_of
from vitnas.report.progress import corner_of, is_random_search
from vitnas.run import Run
from vitnas.surrogate.evidence import scores
from vitnas.surrogate.features import facts_of
from vitnas.surrogate.joint import with_untrained
from vitnas.surrogate.odds import percent

_Array = npt.NDArray[np.float64]
_MOST, _FEWEST, _DRAWS, _MARKS = 100, 10, 200, 12
_MOST_TRIES = 400  # a draw takes some milliseconds


@dataclass(frozen=True)
class Chance:
    """Hypervolume of random networks, all trained to the end, as a share of the run's own.

    Attributes:
        networks: (k,) how many; rising.
        low, median, high: (k,) shares that 5, 50 and 95 % of the drawn searches stay below.
    """

    networks: tuple[int, ...]
    low: tuple[float, ...]
    median: tuple[float, ...]
    high: tuple[float, ...]


def chance_of(run: Run) -> Chance | None:
    """A random search with as many networks as the run trained, at most 100.

    It is drawn 200 times: different networks of the space within its limits, and the true top-1 of
    these and of the run's best ones, given the run's scores (`surrogate.joint`). So it is compared
    what both sides reach in truth, and not how lucky their scores are.

    Returns:
        None if the run is a random search, or has a measured cost, no noise, too few networks to
        learn from, or a space that cannot be read here.

    Randomness: its own, with a fixed seed.
    """
    number = min(_MOST, sum(trial.is_ended_here and not trial.origin for trial in run.trials))
    if (
        is_random_search(run)
        or number < _FEWEST
        or any(COSTS[name].is_measured for name in run.costs)
    ):
        return None
    drawn = _drawn(run, number + number // 2)
    number = min(number, len(drawn))
    both = _both(run, drawn) if number >= _FEWEST else None
    if both is None:
        return None
    random, corner = np.random.default_rng(1), corner_of([run])
    marks = sorted({round(mark) for mark in np.linspace(1, number, _MARKS)})
    shares = []
    for top1 in both.top1:
        points = np.column_stack([-top1, both.log_costs])
        searched = points[random.permutation(both.drawn)[:number]]
        reached = [hypervolume(searched[:mark], corner) for mark in marks]
        whole = hypervolume(points[both.best], corner)
        shares += [np.array(reached) / whole] if whole > 0 else []
    if not shares:
        return None
    low, median, high = np.quantile(shares, [0.05, 0.5, 0.95], axis=0).tolist()
    return Chance(tuple(marks), tuple(low), tuple(median), tuple(high))


@dataclass(frozen=True)
class _Both:
    """The run's best networks, and random ones; a network may be among both.

    Attributes:
        top1: (s, k) draws of the true top-1 of all in percent.
        log_costs: (k, d) their costs, to minimise.
        best, drawn: indices of both kinds.
    """

    top1: _Array
    log_costs: _Array
    best: list[int]
    drawn: list[int]


def _both(run: Run, drawn: Mapping[str, tuple[ModelConfig, Cost]]) -> _Both | None:
    """None where too little is known to learn from."""
    known = [trial for trial in run.complete if trial.expected is not None]
    if run.noise is None or run.draws is None:
        return None
    trainings = [trial.trainings for trial in known]
    asked = {trial.key for trial in run.draws.trials} | drawn.keys()
    usual = scores(trainings, run.noise).usual.tolist()
    of = [place for place in usual if known[place].key in asked]
    place_of = {known[place].key: index for index, place in enumerate(of)}
    fresh = {key: both for key, both in drawn.items() if key not in place_of}
    place_of |= {key: len(of) + index for index, key in enumerate(fresh)}
    found = with_untrained(
        [facts_of(trial.network, trial) for trial in known],
        trainings,
        run.noise,
        of,
        [facts_of(config, cost) for config, cost in fresh.values()],
    )
    if found is None or not of:
        return None
    mean, covariance = found
    values, axes = np.linalg.eigh(covariance)
    normal = np.random.default_rng(0).standard_normal((_DRAWS, len(mean)))
    top1 = percent(mean + normal @ (axes * np.sqrt(values.clip(0.0))).T)
    amounts = [known[place].costs(run.costs) for place in of]
    amounts += [
        tuple(float(getattr(cost, name)) for name in run.costs) for _, cost in fresh.values()
    ]
    logs = np.array([log_costs(run.costs, amount) for amount in amounts])
    return _Both(top1, logs, list(range(len(of))), [place_of[key] for key in drawn])


def _drawn(run: Run, number: int) -> dict[str, tuple[ModelConfig, Cost]]:
    """At most `number` different networks of the space within its limits, by their keys."""
    space = space_of(run)
    found: dict[str, tuple[ModelConfig, Cost]] = {}
    if space is None:
        return found
    for config in random_networks(space, _MOST_TRIES):
        if not is_ours(config):
            return {}
        cost = closed_form(config)
        if not over_limits(cost, space.config.limits):
            found[config.key] = config, cost
        if len(found) == number:
            break
    return found
