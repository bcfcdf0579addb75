"""Real signals to this very process."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from vitnas.engine.watch import interrupts
from vitnas.engine.watch.interrupts import two_step_interrupt


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)  # Python hears of it between two of its instructions


@pytest.fixture(autouse=True)
def _short_bounce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_BOUNCE_S", 0.1)


def test_the_first_is_told_and_the_second_stops() -> None:
    heard: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def press_twice() -> None:
        with two_step_interrupt(lambda: heard.append(1)):
            press()
            time.sleep(0.15)
            assert heard == [1]
            press()

    with pytest.raises(KeyboardInterrupt):
        press_twice()
    assert heard == [1]
    assert signal.getsignal(signal.SIGINT) is before


def test_one_key_that_arrives_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_BOUNCE_S", 60.0)  # a busy machine may be slow between both
    heard: list[int] = []
    with two_step_interrupt(lambda: heard.append(1)):
        press()
        press()
    assert heard == [1]


def test_other_threads_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    inside: list[object] = []

    def work() -> None:
        with two_step_interrupt(lambda: None):
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == [before]
