"""The cheapest and the most expensive networks of a space, found by hill climbing.

A random sample misses the ends of a space with many axes. From a few starts, one answer of a draw
is changed at a time, as long as the cost improves. Every step is a network within the limits, so
the ends that are found exist. It is not proven that nothing lies beyond them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Literal

from vitnas.config.space import SearchSpace
from vitnas.config.trials import PositionTrial, Refused
from vitnas.cost.closed_form import Cost, closed_form
from vitnas.cost.limits import over_limits

Quantity = Literal["flops", "num_params"]
Wheels = list[tuple[int, int]]
"""Answers of a draw; see `PositionTrial`."""
_STARTS = 3
_ATTEMPTS = 300
_WIDEST = 100
_CONTINUOUS = 17


class _Trial(PositionTrial):
    """Offers a few values of a continuous range, evenly apart, both ends included."""

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        if step is not None:
            return super().suggest_float(name, low, high, step=step, log=log)
        part = self._turn(_CONTINUOUS) / (_CONTINUOUS - 1)
        return min(high, low + part * (high - low))


def extremes(space: SearchSpace, quantity: Quantity) -> tuple[int, int] | None:
    """Least and greatest value found within the limits.

    Returns:
        The two ends; None when no start lies within the limits.
    """
    ends: list[int] = []
    for sign in (1, -1):
        climbed = [_climb(space, quantity, sign, seed) for seed in range(_STARTS)]
        found = [sign * value for value in climbed if value is not None]
        if not found:
            return None
        ends.append(sign * min(found))
    return ends[0], ends[1]


def _climb(space: SearchSpace, quantity: Quantity, sign: int, seed: int) -> int | None:
    """The local minimum (`sign` 1) or maximum (-1) that a climb from a random start reaches."""
    wheels, cost = _start(space, seed)
    if cost is None:
        return None
    best: int = getattr(cost, quantity)
    while (better := _step(space, quantity, sign, wheels, best)) is not None:
        wheels, best = better
    return best


def _step(
    space: SearchSpace, quantity: Quantity, sign: int, wheels: Wheels, best: int
) -> tuple[Wheels, int] | None:
    """The first neighbour that is better than `best`, or None at the end of the climb."""
    for positions in _neighbours(wheels):
        turned, cost = _price(space, positions)
        if cost is not None and sign * getattr(cost, quantity) < sign * best:
            return turned, getattr(cost, quantity)
    return None


def _start(space: SearchSpace, seed: int) -> tuple[Wheels, Cost | None]:
    rng = random.Random(seed)
    for _ in range(_ATTEMPTS):
        positions = [rng.randrange(1 << 16) for _ in range(200)]
        wheels, cost = _price(space, positions)
        if cost is not None:
            return wheels, cost
    return [], None


def _price(space: SearchSpace, positions: list[int]) -> tuple[Wheels, Cost | None]:
    """The answers that the positions stand for, and the cost; None outside rules and limits."""
    trial = _Trial(positions)
    try:
        cost = closed_form(space.suggest(trial))
    except Refused:
        return trial.wheels, None
    return trial.wheels, None if over_limits(cost, space.config.limits) else cost


def _neighbours(wheels: Wheels) -> Iterator[list[int]]:
    """All draws that differ in one answer."""
    positions = [position for position, _ in wheels]
    for index, (position, count) in enumerate(wheels):
        for other in _others(position, count):
            yield [*positions[:index], other, *positions[index + 1 :]]


def _others(position: int, count: int) -> Iterable[int]:
    """The other answers; if there are very many, those at doubling distances, farthest first."""
    if count <= _WIDEST:
        return (other for other in range(count) if other != position)
    steps = [1 << bit for bit in reversed(range(count.bit_length()))]
    near = (position + side * step for step in steps for side in (-1, 1))
    return (other for other in near if 0 <= other < count)
