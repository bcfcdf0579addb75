"""What a space holds, without any training: the number of networks, their costs, problems."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from vitnas.config.axes import Choice
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.trials import RandomTrial, Refused
from vitnas.cost.closed_form import Cost, closed_form
from vitnas.cost.extremes import Quantity, extremes
from vitnas.cost.limits import over_limits
from vitnas.cost.mixers import counted_mixers
from vitnas.errors import ConfigError

_LISTED = 3_000
_PROBES = 400


@dataclass(frozen=True)
class SpaceSurvey:
    """What `vitnas space` prints.

    Attributes:
        num_networks: different networks before limits; exact, or an estimate.
        error: standard error of the estimate as a share of it; 0 when counted exactly.
        flops, num_params: least and greatest found within the limits; the true ends where all
            networks are listed.
        within: share of the draws that meet the limits.
        num_seen: draws that the ranges and shares come from.
        samples: a few networks within the limits, spread over the range of FLOPs.
        problems: one line each.
    """

    num_networks: float
    error: float
    flops: tuple[int, int]
    num_params: tuple[int, int]
    within: float
    num_seen: int
    samples: tuple[ModelConfig, ...]
    problems: tuple[str, ...]


def survey(space: SearchSpace, draws: int = 2_000, num_samples: int = 5) -> SpaceSurvey:
    """Count the networks of a space and their costs; all of them when there are few.

    Args:
        space: the space.
        draws: random networks to look at when there are too many to list; fixed seeds.
        num_samples: how many to show.

    Raises:
        ConfigError: no network seen meets the limits.
    """
    count, error = estimate_size(space)
    refused: Counter[str] = Counter()
    listed = count <= _LISTED
    if listed:
        networks = _by_key(space)
        count, error, seen = len(networks), 0.0, len(networks)
        configs = list(networks.values())
    else:
        configs = list(random_networks(space, draws, refused))
        seen = draws
    priced = [(closed_form(config), config) for config in configs]
    limits = space.config.limits
    meeting = [(cost, config) for cost, config in priced if over_limits(cost, limits) is None]
    if not meeting:
        raise nothing_within(space, configs)
    meeting.sort(key=lambda pair: pair[0].flops)
    spread = [round(i * (len(meeting) - 1) / max(1, num_samples - 1)) for i in range(num_samples)]
    return SpaceSurvey(
        num_networks=count,
        error=error,
        flops=_range(space, "flops", [cost.flops for cost, _ in meeting], listed),
        num_params=_range(space, "num_params", [cost.num_params for cost, _ in meeting], listed),
        within=len(meeting) / max(1, len(priced)),
        num_seen=seen,
        samples=tuple(meeting[index][1] for index in sorted(set(spread))),
        problems=tuple(_problems(space, configs, refused, seen, len(meeting))),
    )


def _range(
    space: SearchSpace, quantity: Quantity, seen: list[int], listed: bool
) -> tuple[int, int]:
    """Ends of the costs seen and, unless every network was seen, of those that climbing finds."""
    ends = None if listed else extremes(space, quantity)
    everything = [*seen, *(ends or ())]
    return min(everything), max(everything)


def all_within(space: SearchSpace) -> frozenset[str] | None:
    """Keys of every network within the limits; None when there are too many to list."""
    if estimate_size(space)[0] > _LISTED:
        return None
    return frozenset(config.key for config, _ in networks_within(space))


def networks_within(space: SearchSpace, draws: int = 2_000) -> Iterator[tuple[ModelConfig, Cost]]:
    """Different networks within the limits with their costs: all, or those among random draws
    where there are too many to list; the same ones in every call."""
    listed = estimate_size(space)[0] <= _LISTED
    drawn = space.networks() if listed else random_networks(space, draws)
    return priced_within(space, drawn)


def priced_within(
    space: SearchSpace, drawn: Iterable[ModelConfig]
) -> Iterator[tuple[ModelConfig, Cost]]:
    """The different ones of `drawn` that are within the limits, with their costs."""
    for config in {config.key: config for config in drawn}.values():
        cost = closed_form(config)
        if over_limits(cost, space.config.limits) is None:
            yield config, cost


def _by_key(space: SearchSpace) -> dict[str, ModelConfig]:
    return {config.key: config for config in space.networks()}


def check_limits(space: SearchSpace, attempts: int = 500) -> None:
    """Raise unless a network within the limits is found; stops at the first.

    Raises:
        ConfigError: none among `attempts` random networks; names the nearest cost seen.
    """
    configs = []
    for config in random_networks(space, attempts):
        if over_limits(closed_form(config), space.config.limits) is None:
            return
        configs.append(config)
    raise nothing_within(space, configs)


def median_network(space: SearchSpace, draws: int = 25) -> ModelConfig | None:
    """The network of median FLOPs among random ones within the limits; None if none is."""
    limits = space.config.limits
    priced = [(closed_form(c), c) for c in random_networks(space, draws)]
    within = [(cost.flops, config) for cost, config in priced if over_limits(cost, limits) is None]
    within.sort(key=lambda pair: pair[0])
    return within[len(within) // 2][1] if within else None


def flops_range(space: SearchSpace, draws: int = 500) -> tuple[int, int]:
    """Least and greatest FLOPs within the limits of random networks and of those that climbing
    finds; fixed seeds. A search reaches ends that random networks miss.

    Raises:
        ConfigError: none of them meets the limits.
    """
    configs = list(random_networks(space, draws))
    costs = [closed_form(config) for config in configs]
    within = [cost.flops for cost in costs if over_limits(cost, space.config.limits) is None]
    if not within:
        raise nothing_within(space, configs)
    return _range(space, "flops", within, listed=False)


def nothing_within(space: SearchSpace, configs: list[ModelConfig]) -> ConfigError:
    """The error for limits that no network meets, with the nearest cost that was seen."""
    costs = [closed_form(config) for config in configs]
    for name in ("flops", "num_params"):
        bounds = getattr(space.config.limits, name)
        values = sorted(getattr(cost, name) for cost in costs)
        for end, reached in (("max", values[0]), ("min", values[-1])):
            limit = getattr(bounds, end)
            if limit is None or (reached <= limit if end == "max" else reached >= limit):
                continue
            return ConfigError(
                f"no network of {len(configs)} drawn meets it",
                address=f"limits.{name}.{end}",
                value=limit,
                nearest=reached,
                file=space.file,
            )
    rule = f"no network of {len(configs)} drawn meets all of them at once"
    return ConfigError(rule, address="limits", file=space.file)


def estimate_size(space: SearchSpace, probes: int = _PROBES) -> tuple[float, float]:
    """Number of different draws and its relative standard error (Knuth's estimate; fixed seeds)."""
    branches = []
    for seed in range(probes):
        trial = RandomTrial(seed)
        try:
            space.suggest(trial)
            branches.append(trial.branches)
        except Refused:
            branches.append(0.0)
    mean = math.fsum(branches) / probes
    if not math.isfinite(mean) or not mean:
        return mean, 0.0
    variance = math.fsum((value - mean) ** 2 for value in branches) / (probes - 1)
    return mean, math.sqrt(variance / probes) / mean


def random_networks(
    space: SearchSpace, draws: int, refused: Counter[str] | None = None
) -> Iterator[ModelConfig]:
    """The networks of random draws with the seeds 0, 1, ... `draws` - 1, each as often as it comes;
    `refused` counts why a draw is none."""
    for seed in range(draws):
        try:
            yield space.suggest(RandomTrial(seed))
        except Refused as refusal:
            if refused is not None:
                refused[str(refusal)] += 1


def _problems(
    space: SearchSpace,
    configs: list[ModelConfig],
    refused: Counter[str],
    seen: int,
    num_within: int,
) -> Iterator[str]:
    if refused:
        reason, times = refused.most_common(1)[0]
        share = 100 * sum(refused.values()) / seen
        yield f"{share:.0f} % of draws break a rule, most often ({times}x): {reason}"
    if num_within < 0.2 * len(configs):
        share = 100 * num_within / len(configs)
        yield f"only {share:.1f} % of the networks meet the limits"
    for name in counted_mixers(configs):
        yield f"{name} has no closed form: it is built and counted, which takes longer"
    drawn = Counter(name for config in configs for stage in config.stages for name in stage.kinds)
    for axis in space.axes:
        if isinstance(axis, Choice) and axis.field == "token_mixer":
            for option in axis.options:
                if isinstance(option, str) and not drawn[option]:
                    yield f"model.{axis.name}: '{option}' never came up"
