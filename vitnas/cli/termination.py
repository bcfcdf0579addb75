"""SIGTERM, by which systems end a program, is the same to a command as Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def terminations_interrupt() -> Iterator[list[int]]:
    """Inside, a SIGTERM does what Ctrl-C does there; the list has an entry for each.

    A forked child ends at once, as it would without this. Outside the main thread nothing is
    changed, because Python handles no signals there.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    driver = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() != driver:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        heard.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        if not callable(interrupt):  # a shell lets what it starts in its background ignore Ctrl-C
            raise KeyboardInterrupt
        interrupt(number, frame)

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGTERM, before)
