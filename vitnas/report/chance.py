"""What a random search of a run's space would have reached, by the model of expected top-1."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitnas.config.costs import COSTS, log_costs
from vitnas.config.files import validate
from vitnas.config.mixers import MIXERS
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.config.trials import RandomTrial, Refused
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.errors import VitnasError
from vitnas.pareto import hypervolume
from vitnas.report.progress import corner_of
from vitnas.run import Run
from vitnas.surrogate.evidence import scores
from vitnas.surrogate.features import facts_of
from vitnas.surrogate.joint import with_untrained
from vitnas.surrogate.odds import percent

_Array = npt.NDArray[np.float64]
_MOST, _FEWEST, _DRAWS, _MARKS = 120, 10, 200, 12
_MOST_TRIES = 600  # a draw takes some milliseconds


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
    """A random search with as many networks as the run trained, at most 120.

    It is drawn 200 times: different networks of the space within its limits, and the true top-1 of
    these and of the run's best ones, given the run's scores (`surrogate.joint`). So it is compared
    what both sides reach in truth, and not how lucky their scores are.

    Returns:
        None if the run is a random search, or has a measured cost, no noise, too few networks to
        learn from, or a space that cannot be read here.

    Randomness: its own, with a fixed seed.
    """
    number = min(_MOST, sum(trial.is_ended_here and not trial.origin for trial in run.trials))
    known = [trial for trial in run.complete if trial.expected is not None]
    if {session.sampler for session in run.environment.sessions} == {"random"}:
        return None
    if number < _FEWEST or run.noise is None or any(COSTS[name].is_measured for name in run.costs):
        return None
    trainings = [trial.trainings for trial in known]
    told = scores(trainings, run.noise)
    drawn = _networks(run, number + number // 2) if told.says_more else {}
    number, usual = min(number, len(drawn)), set(told.usual.tolist())
    if number < _FEWEST:
        return None
    plausible = run.draws.trials if run.draws is not None else ()
    best = {trial.key for trial in plausible} | set(drawn)
    of = [place for place, trial in enumerate(known) if trial.key in best and place in usual]
    own = {known[place].key for place in of}
    fresh = {key: config for key, config in drawn.items() if key not in own}
    costs = {key: closed_form(config) for key, config in fresh.items()}
    found = with_untrained(
        [facts_of(trial.network, trial) for trial in known],
        trainings,
        run.noise,
        of,
        [facts_of(config, costs[key]) for key, config in fresh.items()],
    )
    if found is None:
        return None
    networks = [known[place] for place in of]
    place_of = {key: place for place, key in enumerate([*(t.key for t in networks), *fresh])}
    amounts = [trial.costs(run.costs) for trial in networks]
    amounts += [tuple(float(getattr(costs[key], name)) for name in run.costs) for key in fresh]
    logs = np.array([log_costs(run.costs, amount) for amount in amounts])
    mean, covariance = found
    values, axes = np.linalg.eigh(covariance)
    random = np.random.default_rng(0)
    draws = random.standard_normal((_DRAWS, len(mean))) @ (axes * np.sqrt(values.clip(0.0))).T
    pool, corner = np.array([place_of[key] for key in drawn]), corner_of([run])
    marks = sorted({round(mark) for mark in np.linspace(1, number, _MARKS)})
    shares = []
    for top1 in percent(mean + draws):
        points = np.column_stack([-top1, logs])
        searched = points[random.permutation(pool)[:number]]
        volumes = [hypervolume(searched[:mark], corner) for mark in marks]
        shares.append(np.array(volumes) / hypervolume(points[: len(of)], corner))
    low, median, high = np.quantile(shares, [0.05, 0.5, 0.95], axis=0).tolist()
    return Chance(tuple(marks), tuple(low), tuple(median), tuple(high))


def _networks(run: Run, number: int) -> dict[str, ModelConfig]:
    """At most `number` different networks of the space within its limits, by their keys."""
    try:
        space = SearchSpace(validate(SpaceConfig, dict(run.space)))
    except VitnasError:
        return {}
    found: dict[str, ModelConfig] = {}
    for seed in range(_MOST_TRIES):
        with suppress(Refused):
            config = space.suggest(RandomTrial(seed))
            if not all(mixer in MIXERS for stage in config.stages for mixer in stage.mixers):
                return {}
            if not over_limits(closed_form(config), space.config.limits):
                found[config.key] = config
        if len(found) == number:
            break
    return found
