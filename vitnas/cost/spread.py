"""How evenly random draws of a space are spread: over FLOPs, mixers, passes and groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace
from vitnas.config.stage import StageConfig
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.cost.survey import random_networks

Place = tuple[int, int]
"""A stage: how many stages its network has, and its index."""


@dataclass(frozen=True)
class Spread:
    """Shares of random draws, from 0 to 1.

    Attributes:
        refused: of all draws: they break a rule.
        within: of all draws: they are within the limits.
        sliced: of those within the limits: a pass slices the tokens.
        tenths: of those within the limits: in each tenth of the limits' range of log FLOPs.
        mixed: of those within the limits: a stage has two mixers.
        mixers, passes: by stage: how many networks within the limits have what there; a stage of
            two mixers is left out of `mixers`.
    """

    refused: float
    within: float
    sliced: float
    tenths: tuple[float, ...]
    mixed: float
    mixers: dict[Place, Counter[str]]
    passes: dict[Place, Counter[int]]


def spread(space: SearchSpace, draws: int = 3_000) -> Spread:
    """The spread of random draws with the seeds 0, 1, ... `draws` - 1.

    Raises:
        ValueError: none of them is within the limits.
    """
    drawn = list(random_networks(space, draws))
    priced = [(closed_form(config), config) for config in drawn]
    limits = space.config.limits
    within = [(cost.flops, config) for cost, config in priced if not over_limits(cost, limits)]
    if not within:
        raise ValueError(f"none of {draws} draws is within the limits")
    flops, configs = zip(*within, strict=True)
    ends = limits.flops.min or min(flops), limits.flops.max or max(flops)
    mixers: dict[Place, Counter[str]] = {}
    passes: dict[Place, Counter[int]] = {}
    for config in configs:
        for index, stage in enumerate(config.stages):
            place = len(config.stages), index
            mixers.setdefault(place, Counter()).update(stage.kinds if len(stage.kinds) == 1 else ())
            passes.setdefault(place, Counter())[stage.passes] += 1
    return Spread(
        refused=1 - len(drawn) / draws,
        within=len(within) / draws,
        sliced=sum(map(_is_sliced, configs)) / len(configs),
        tenths=tuple(count / len(flops) for count in _tenths(flops, *ends)),
        mixed=sum(map(_is_mixed, configs)) / len(configs),
        mixers=mixers,
        passes=passes,
    )


def _tenths(values: Sequence[float], low: float, high: float) -> list[int]:
    """How many of the values are in each tenth of the range, on a log scale."""
    width = math.log(high / low) / 10 or 1.0
    found = Counter(min(9, int(math.log(value / low) / width)) for value in values)
    return [found[tenth] for tenth in range(10)]


def _is_sliced(config: ModelConfig) -> bool:
    def slices(stage: StageConfig) -> bool:
        return stage.facts.groups == "sliced" and max(stage.groups) > 1

    return any(map(slices, config.stages))


def _is_mixed(config: ModelConfig) -> bool:
    return any(len(stage.kinds) > 1 for stage in config.stages)
