"""What a search may spend besides its number of trials: wall time and GPU time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

DEFAULT_TRIALS = 24


@dataclass(frozen=True)
class Budget:
    """When a search starts no more trainings; running ones finish.

    Attributes:
        seconds: wall time of this session; None = no bound.
        gpu_seconds: GPUs times seconds, over all trainings of the run and lost attempts, earlier
            sessions included; None = no bound. Trainings that were running when the driver was
            killed do not count.
        gpus: GPUs, or the share of one, that a training holds.
    """

    seconds: float | None = None
    gpu_seconds: float | None = None
    gpus: float = 0.0


NO_BOUNDS = Budget()


class Meter:
    """Counts what a session spends of a budget.

    Args:
        budget: the bounds.
        gpu_seconds: spent in earlier sessions.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        budget: Budget,
        gpu_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self._clock = clock
        self._since = clock()
        self._ended = gpu_seconds
        self._running: dict[int, tuple[float, float]] = {}  # trial: since when, GPUs
        self._attempts: dict[int, float] = {}  # trial: GPU seconds of its ended attempts

    def begin(self, number: int, *, alone: bool = False) -> None:
        """Trial `number` occupies its device from now; all of a GPU when `alone`."""
        gpus = max(1.0, self.budget.gpus) if alone and self.budget.gpus else self.budget.gpus
        self._running[number] = self._clock(), gpus

    def elapsed(self, number: int) -> float:
        """Seconds since trial `number` began; 0 if it has not begun."""
        began = self._running.get(number)
        return 0.0 if began is None else self._clock() - began[0]

    def end(self, number: int) -> float:
        """Trial `number` has let go of its device: its GPU seconds, all attempts of it."""
        since, gpus = self._running.pop(number, (self._clock(), 0.0))
        spent = gpus * (self._clock() - since)
        self._ended += spent
        self._attempts[number] = self._attempts.get(number, 0.0) + spent
        return self._attempts[number]

    @property
    def gpu_seconds(self) -> float:
        """Spent by the run so far, trainings under way included."""
        now = self._clock()
        return self._ended + sum(gpus * (now - since) for since, gpus in self._running.values())

    @property
    def spent(self) -> str | None:
        """Which bound is reached, as an end of "ended because ..."; None while none is."""
        bounds = self.budget
        if bounds.seconds is not None and self._clock() - self._since >= bounds.seconds:
            return "the time is up"
        if bounds.gpu_seconds is not None and self.gpu_seconds >= bounds.gpu_seconds:
            return "the GPU hours are spent"
        return None
