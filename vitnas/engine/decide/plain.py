"""Networks of a space that are alike in all stages, as somebody writes them by hand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import chain
from math import log

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.trials import PlainTrial, Refused
from vitnas.cost.survey import priced_within

NUMBER = 8
_DRAWS = 600
_TURNS = 4


def plain_networks(space: SearchSpace, number: int = NUMBER) -> tuple[ModelConfig, ...]:
    """Plain networks within the limits, evenly over log FLOPs; their mixers take turns.

    Axes that are drawn apart seldom come together as a plain network: of random draws of a space
    with three stages and four mixers, one in sixteen has one mixer. So a short search may never see
    what is best in all stages at once. The answers follow from the space alone.

    At most four sequences of mixers take part: those with the fewest different mixers, then by
    name.

    Args:
        space: the space.
        number: how many; fewer are found in a space with fewer.

    Returns:
        Cheapest first.
    """
    left = {config: log(cost.flops) for config, cost in priced_within(space, _drawn(space))}
    turns = sorted({_mixers(config) for config in left}, key=_plainness)[:_TURNS]
    left = {config: size for config, size in left.items() if _mixers(config) in turns}
    if not left:
        return ()
    low, high = min(left.values()), max(left.values())
    chosen: list[tuple[float, ModelConfig]] = []
    for index in range(number):
        wanted = low + (high - low) * (index + 0.5) / number
        of_turn = [config for config in left if _mixers(config) == turns[index % len(turns)]]
        if of_turn:
            best = min(of_turn, key=lambda config: (abs(left[config] - wanted), config.key))
            chosen.append((left.pop(best), best))
    return tuple(config for _, config in sorted(chosen, key=lambda pair: pair[0]))


def _drawn(space: SearchSpace) -> Iterator[ModelConfig]:
    for seed in range(_DRAWS):
        with contextlib.suppress(Refused):
            yield space.suggest(PlainTrial(seed))


def _mixers(config: ModelConfig) -> tuple[tuple[str, ...], ...]:
    return tuple(stage.kinds for stage in config.stages)


def _plainness(mixers: tuple[tuple[str, ...], ...]) -> tuple[int, tuple[tuple[str, ...], ...]]:
    """The fewer mixers, the plainer."""
    return len({*chain.from_iterable(mixers)}), mixers
