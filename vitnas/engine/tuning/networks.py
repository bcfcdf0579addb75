"""The few networks that recipes are tried on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from math import log

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.trials import LikeTrial, RandomTrial, Refused
from vitnas.cost.survey import nothing_within, priced_within
from vitnas.engine.decide.warm_start import seed_candidates
from vitnas.errors import RunError
from vitnas.run import Run
from vitnas.seeds import derive_seed
from vitnas.words import plural

_DRAWS = 200
_TAILS = 0.05


def varied_networks(space: SearchSpace, number: int, seed: int) -> tuple[ModelConfig, ...]:
    """Networks within the limits, evenly spread over log FLOPs, with as many mixers as possible.

    They are some of those that the space names (`seed_configs`), where enough of these are within
    the limits: a search chooses networks like them, and networks at random may want another
    recipe. Else they are random draws. They follow from the space and the seed. The cheapest and
    the dearest 5 % are left out. Near each of the wanted FLOPs, the network with the most mixers
    that no other one has yet is taken.

    Args:
        space: the space.
        number: how many; fewer are found in a space with fewer.
        seed: of the draws.

    Returns:
        Cheapest first.

    Raises:
        ConfigError: no network that was drawn meets the limits.
    """
    found = _priced(space, _named(space))
    if len(found) < number:
        drawn = list(_drawn(space, seed))
        found = _priced(space, drawn)
        if not found:
            raise nothing_within(space, drawn)
    if len(found) <= number:
        return tuple(config for _, config in found)
    tail = int(_TAILS * len(found))
    low, high = found[tail][0], found[-1 - tail][0]
    chosen: dict[str, tuple[float, ModelConfig]] = {}
    for index in range(number):
        wanted = low + (high - low) * (index + 0.5) / number
        flops, config = _best_near(wanted, found, chosen)
        chosen[config.key] = flops, config
    return tuple(config for _, config in sorted(chosen.values(), key=lambda pair: pair[0]))


def front_networks(space: SearchSpace, run: Run, number: int) -> tuple[ModelConfig, ...]:
    """Networks of a run's front (see `Run.spread`).

    Args:
        space: for whose images they must be.
        run: any run; its front is by expected top-1.
        number: how many; fewer are found on a smaller front.

    Returns:
        Cheapest first.

    Raises:
        RunError: the front is empty, or of networks for other images.
    """
    chosen = run.spread(number)
    if not chosen:
        raise RunError(f"{run.path}: --front-of: no trial is complete yet, so there is no front")
    for trial in run.front:
        _check_images(space, run, trial.network)
    return tuple(trial.network for trial in chosen)


def _check_images(space: SearchSpace, run: Run, network: ModelConfig) -> None:
    ours, theirs = _images(space.example), _images(network)
    if theirs[1:] != ours[1:] or network.image_hw not in space.image_sizes():
        rule = f"its networks are for {', '.join(theirs)}, those of the space {space.name} for"
        raise RunError(f"{run.path}: --front-of: {rule} {', '.join(ours)}")


def _images(network: ModelConfig) -> list[str]:
    """Size, channels and classes in words."""
    height, width = network.image_hw
    channels, classes = plural(network.in_chans, "channel"), plural(network.num_classes, "class")
    return [f"{height} x {width} px", channels, classes]


def _best_near(
    wanted: float,
    found: list[tuple[float, ModelConfig]],
    chosen: dict[str, tuple[float, ModelConfig]],
) -> tuple[float, ModelConfig]:
    """Of the networks nearest to these log FLOPs, the one with the most new mixers."""
    known = {mixer for _, config in chosen.values() for mixer in _mixers(config)}
    left = [pair for pair in found if pair[1].key not in chosen]
    near = sorted(left, key=lambda pair: abs(pair[0] - wanted))[: max(3, len(left) // 10)]
    return max(near, key=lambda pair: len(_mixers(pair[1]) - known))


def _mixers(config: ModelConfig) -> set[str]:
    return {mixer for stage in config.stages for mixer in stage.kinds}


def _priced(space: SearchSpace, configs: Iterable[ModelConfig]) -> list[tuple[float, ModelConfig]]:
    """(log FLOPs, network) of the different ones that are within the limits, cheapest first."""
    within = [(log(cost.flops), config) for config, cost in priced_within(space, configs)]
    return sorted(within, key=lambda pair: (pair[0], pair[1].key))


def _named(space: SearchSpace) -> Iterator[ModelConfig]:
    """The networks that the space names and can draw."""
    named, _ = seed_candidates(space, ("own",))
    return (space.suggest(LikeTrial(candidate.params)) for candidate in named)


def _drawn(space: SearchSpace, seed: int) -> Iterator[ModelConfig]:
    for index in range(_DRAWS):
        with contextlib.suppress(Refused):
            yield space.suggest(RandomTrial(derive_seed(seed, "tune", index)))
