"""Plain lines where there is no terminal, a panel where there is one."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from tests.engine.conftest import train
from vitnas.engine.controller import Controller
from vitnas.engine.display import Display, clock

Make = Callable[..., Controller]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(controller_of: Make, stream: io.StringIO, num_trials: int) -> str:
    with Display(num_trials, 3, stream) as display:
        controller = controller_of(num_trials=num_trials, listener=display.listen)
        while (job := controller.next()) is not None:
            train(controller, job)
    return stream.getvalue()


def test_plain_lines_one_a_trial(controller_of: Make) -> None:
    lines = run(controller_of, io.StringIO(), 3).splitlines()
    assert [line[:5] for line in lines] == ["[1/3]", "[2/3]", "[3/3]"]
    assert all("complete" in line and "FLOPs" in line and "front" in line for line in lines)
    assert "0:00 left" in lines[-1]


def test_a_resumed_run_counts_what_is_there(controller_of: Make) -> None:
    run(controller_of, io.StringIO(), 2)
    lines = run(controller_of, io.StringIO(), 3).splitlines()
    assert [line[:5] for line in lines] == ["[3/3]"]


def test_a_terminal_gets_a_panel(controller_of: Make) -> None:
    text = run(controller_of, Terminal(), 3)
    assert "3/3 trials, 0 running" in text
    assert "network on the front" in text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (75.4, "1:15"), (3723, "1:02:03")])
def test_times_read_like_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
