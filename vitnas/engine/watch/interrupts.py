"""Ctrl-C once: finish what is running. Twice: stop now."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_BOUNCE_S = 0.5


@contextmanager
def two_step_interrupt(first: Callable[[], None]) -> Iterator[Sequence[float]]:
    """Inside, the first SIGINT calls `first`, and a later one raises `KeyboardInterrupt`.

    Gives what is empty until the first one has come.

    A second signal within half a second counts as the same one: the terminal sends a signal to all
    processes, and programs such as make send it to their children again. Outside the main thread
    nothing is changed, because Python handles no signals there.
    """
    heard: list[float] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return

    def handle(number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not heard:
            heard.append(now)
            first()
        elif now - heard[0] > _BOUNCE_S:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)
