"""CPU cores, threads and processes: what this process may use, what one training takes, and which
of the processes of a training this one is."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Launch:
    """Which of the processes that train one network together was launched; 0 of 1 = it is alone.

    Attributes:
        rank: its number among all, from 0; the first one writes and speaks.
        size: how many there are.
        local: its number among those on this machine.
        beside: how many are on this machine.
    """

    rank: int = 0
    size: int = 1
    local: int = 0
    beside: int = 1


def launch() -> Launch:
    """As torchrun says it in the environment, and whatever starts processes in its way."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    told = [os.environ.get(name, "") for name in names]
    if not all(text.isdecimal() for text in told) or int(told[1]) < 2:
        return Launch()
    return Launch(*map(int, told))


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_beside(gpu: bool) -> int:
    """CPU threads of torch for one training.

    One on the CPU: small networks gain little from more, several threads on busy cores wait for
    each other (4 to 9 times slower), and the sums then depend on their number. With a GPU it is all
    cores, which the processes on this machine share.
    """
    return max(1, cores() // launch().beside) if gpu else 1
