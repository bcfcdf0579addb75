"""Who answers a space's questions: Optuna, chance, or a list of positions."""

from __future__ import annotations

import contextlib
import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from vitnas.errors import ConfigError

_Suggested = TypeVar("_Suggested")


class Trial(Protocol):
    """The part of `optuna.trial.Trial` that a space needs."""

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any: ...
    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int: ...
    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float: ...


class Refused(ConfigError):
    """Answers that lead to no network: they break a rule that no single axis can see."""


class RandomTrial:
    """Answers uniformly at random, from its own generator.

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


class LikeTrial(RandomTrial):
    """Gives the answers of another draw where they are on offer, and is random elsewhere.

    Args:
        answers: the other draw's, by Optuna's names. The options of a question may have been
            narrowed by earlier answers (`groups@0,1`), so only what stands before `@` counts, and
            the last of several such names.
        seed: of what is random.

    Attributes:
        params: the answers given, by the part of the name before `@`.
    """

    def __init__(self, answers: Mapping[str, Any], seed: int = 0) -> None:
        super().__init__(seed)
        self._answers = {name.partition("@")[0]: value for name, value in answers.items()}
        self.params: dict[str, Any] = {}

    def _give(self, name: str, fits: Callable[[Any], bool], ask: Callable[[], Any]) -> Any:
        name = name.partition("@")[0]
        value = self._answers.get(name)
        self.params[name] = value if name in self._answers and fits(value) else ask()
        return self.params[name]

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        ask = super().suggest_categorical
        return self._give(name, lambda value: value in choices, lambda: ask(name, choices))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        ask = super().suggest_int
        fits = range(low, high + 1, step).__contains__
        return int(self._give(name, fits, lambda: ask(name, low, high, step=step, log=log)))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        ask = super().suggest_float
        fits = lambda value: low <= value <= high  # noqa: E731
        return float(self._give(name, fits, lambda: ask(name, low, high, step=step, log=log)))


class PlainTrial:
    """Gives the same answer for all stages, as in a network that is designed by hand.

    A number is taken from the same place of each stage's list or range, so widths grow together. Of
    other values the first one in an order of preference is taken, which is the same for all stages.

    Args:
        seed: of places and preferences.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def _share(self, name: str, value: object = None) -> float:
        """From 0 up to 1, the same for the same field of all stages."""
        field = re.sub(r"stages\[\d+\]", "stages", name)
        return random.Random(f"{self._seed} {field} {value!r}").random()

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        if all(isinstance(choice, (int, float)) for choice in choices):
            return choices[int(self._share(name) * len(choices))]
        return min(choices, key=lambda choice: self._share(name, choice))

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        return low + step * int(self._share(name) * ((high - low) // step + 1))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        if step is not None:
            return low + step * int(self._share(name) * (round((high - low) / step) + 1))
        return low + self._share(name) * (high - low)


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


def every(
    suggest: Callable[[Trial], _Suggested],
    make_trial: Callable[[Sequence[int]], PositionTrial] = PositionTrial,
) -> Iterator[_Suggested]:
    """What `suggest` makes of every sequence of answers, in a fixed order; refused ones skipped.

    Raises:
        ValueError: it asks for a number of a continuous range.
    """
    positions: list[int] | None = []
    while positions is not None:
        trial = make_trial(positions)
        with contextlib.suppress(Refused):
            yield suggest(trial)
        positions = _next_positions(trial.wheels)


def _next_positions(wheels: list[tuple[int, int]]) -> list[int] | None:
    """The positions after these, the last wheel turning fastest; None after the last."""
    for index in reversed(range(len(wheels))):
        position, count = wheels[index]
        if position + 1 < count:
            return [position for position, _ in wheels[:index]] + [position + 1]
    return None
