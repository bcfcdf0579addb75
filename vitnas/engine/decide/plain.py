"""Networks of a space that are alike in all stages, as somebody writes them by hand."""

from __future__ import annotations

import contextlib
from math import log

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.trials import PlainTrial, Refused
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits

NUMBER = 8
_DRAWS = 600
_MIXERS = 4


def plain_networks(space: SearchSpace, number: int = NUMBER) -> tuple[ModelConfig, ...]:
    """Plain networks within the limits, evenly over log FLOPs; their mixers take turns.

    Axes that are drawn apart seldom come together as a plain network: of random draws of a space
    with three stages and four mixers, one in sixteen has one mixer. So a short search may never see
    what is best in all stages at once. The answers follow from the space alone.

    Args:
        space: the space.
        number: how many; fewer are found in a space with fewer.

    Returns:
        Cheapest first.
    """
    drawn: dict[str, tuple[float, ModelConfig]] = {}
    for seed in range(_DRAWS):
        with contextlib.suppress(Refused):
            config = space.suggest(PlainTrial(seed))
            cost = closed_form(config)
            if over_limits(cost, space.config.limits) is None:
                drawn.setdefault(config.key, (log(cost.flops), config))
    if not drawn:
        return ()
    turns = sorted({_mixers(config) for _, config in drawn.values()}, key=_plainness)[:_MIXERS]
    sizes = [size for size, config in drawn.values() if _mixers(config) in turns]
    low, high = min(sizes), max(sizes)
    chosen: dict[str, ModelConfig] = {}
    for index in range(number):
        wanted, mixers = low + (high - low) * (index + 0.5) / number, turns[index % len(turns)]
        left = [pair for key, pair in drawn.items() if key not in chosen]
        left = [pair for pair in left if _mixers(pair[1]) == mixers]
        if left:
            _, config = min(left, key=lambda pair: (abs(pair[0] - wanted), pair[1].key))
            chosen[config.key] = config
    return tuple(sorted(chosen.values(), key=lambda config: closed_form(config).flops))


def _mixers(config: ModelConfig) -> tuple[str, ...]:
    return tuple(str(stage.token_mixer) for stage in config.stages)


def _plainness(mixers: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """The fewer mixers, the plainer."""
    return len(set(mixers)), mixers
