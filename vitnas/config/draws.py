"""Draws from a space without Optuna: at random, and one after the other."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from vitnas.config.drawing import Trial
    from vitnas.config.model import ModelConfig
    from vitnas.config.space import SearchSpace


_Drawn = TypeVar("_Drawn")


class RandomTrial:
    """Answers a draw uniformly at random from its own generator.

    Attributes:
        branches: the product of the numbers of values on offer at each question asked. Over many
            draws its mean is an unbiased estimate of the number of different draws (Knuth 1975);
            infinite when a continuous range was asked.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.branches = 1.0

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        self.branches *= len(choices)
        return self._random.choice(choices)

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        self.branches *= (high - low) // step + 1
        if log:
            return min(high, int(math.exp(self._random.uniform(math.log(low), math.log(high + 1)))))
        return self._random.randrange(low, high + 1, step)

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        if step is not None:
            count = round((high - low) / step) + 1
            self.branches *= count
            return low + step * self._random.randrange(count)
        self.branches = math.inf
        if log:
            return math.exp(self._random.uniform(math.log(low), math.log(high)))
        return self._random.uniform(low, high)


class PositionTrial:
    """Answers a draw with the values at given positions, and with first values after those.

    Args:
        positions: one whole number a question, in the order they are asked; taken modulo the
            number of values on offer.

    Attributes:
        wheels: (position, number of values on offer) of every question asked.
    """

    def __init__(self, positions: Sequence[int] = ()) -> None:
        self._given = positions
        self.wheels: list[tuple[int, int]] = []

    def _turn(self, count: int) -> int:
        asked = len(self.wheels)
        position = self._given[asked] % count if asked < len(self._given) else 0
        self.wheels.append((position, count))
        return position

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        return choices[self._turn(len(choices))]

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        return low + step * self._turn((high - low) // step + 1)

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        if step is None:
            raise ValueError(f"{name} is continuous: its values cannot be listed")
        return low + step * self._turn(round((high - low) / step) + 1)


def every_draw(space: SearchSpace) -> Iterator[ModelConfig]:
    """Every network that the space can draw, in a fixed order; refused draws are passed over.

    Raises:
        ValueError: the space has a continuous axis.
    """
    return every(space.suggest)


def every(
    draw: Callable[[Trial], _Drawn],
    make_trial: Callable[[Sequence[int]], PositionTrial] = PositionTrial,
) -> Iterator[_Drawn]:
    """What `draw` makes of every sequence of answers; see `every_draw`."""
    from vitnas.config.drawing import Refused

    positions: list[int] | None = []
    while positions is not None:
        trial = make_trial(positions)
        with contextlib.suppress(Refused):
            yield draw(trial)
        positions = _next_positions(trial.wheels)


def _next_positions(wheels: list[tuple[int, int]]) -> list[int] | None:
    """The positions after these, the last wheel turning fastest; None after the last."""
    for index in reversed(range(len(wheels))):
        position, count = wheels[index]
        if position + 1 < count:
            return [position for position, _ in wheels[:index]] + [position + 1]
    return None
