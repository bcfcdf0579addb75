"""How long a batch takes in several runtimes, so that their ratio is fair."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median

ROUNDS = 15
_WARM_UPS = 3
_BURST_S, _LEAST, _MOST = 0.02, 2, 200
"""Of the passes of one runtime in one round."""

Pass = Callable[[], object]


def interleaved(passes: Mapping[str, Pass], rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds of a pass of each runtime, the median of all its passes.

    The runtimes take turns: in each round every one has a burst of passes, and the next round
    starts with another one. So whatever else the machine does meets all of them. The first pass of
    a burst is not counted: threads of the runtime before it may still spin.

    Args:
        passes: a pass of each runtime, by its name.
        rounds: how often each has its turn.
    """
    sizes = {name: _burst(run) for name, run in passes.items()}
    names = list(passes)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        first = number % len(names)
        for name in (*names[first:], *names[:first]):
            passes[name]()
            taken[name] += [_seconds(passes[name]) for _ in range(sizes[name])]
    return {name: round(1e3 * median(found), 5) for name, found in taken.items()}


def _burst(run: Pass) -> int:
    """How many passes a turn has; the passes that tell it also warm the runtime up."""
    once = min(_seconds(run) for _ in range(_WARM_UPS))
    return max(_LEAST, min(_MOST, round(_BURST_S / max(once, 1e-6))))


def _seconds(run: Pass) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started
