"""CPU cores and threads: what this process may use, and what one training takes."""

from __future__ import annotations

import os


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_beside(gpu: bool) -> int:
    """CPU threads of torch for one training.

    One on the CPU: small networks gain little from more, several threads on busy cores wait for
    each other (4 to 9 times slower), and the sums then depend on their number. With a GPU it is all
    cores.
    """
    return cores() if gpu else 1
