"""Plain lines where there is no terminal, a panel where there is one."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from tests.engine.conftest import start, train, train_some
from vitnas.engine.decide.controller import Controller
from vitnas.engine.watch.display import Display, clock
from vitnas.records import Outcome, TrialRecord

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


def test_rates_know_nothing_of_the_workers_start(
    controller_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first training is handed out long before a worker is there."""
    now = [0.0]
    monkeypatch.setattr("vitnas.engine.watch.display.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    with Display(2, 3, stream) as display:
        controller = controller_of(num_trials=2, listener=display.listen)
        first, second = start(controller), start(controller)
        now[0] = 100.0
        for job in (first, second):
            for epoch in (1, 2, 3):
                controller.report(job.number, epoch, 50.0)
                now[0] += 1.0
            controller.finish(job.number, seconds=3.0, device="cpu")
    lines = stream.getvalue().splitlines()
    assert "0.7 epochs/s, 0:03 left" in lines[0]  # two epochs since the first one ended
    assert "0.8 epochs/s, 0:00 left" in lines[1]


def test_time_is_left_after_replicates_of_another_run(controller_of: Make) -> None:
    """Those of this run come when its trials are over, and their number is not known."""
    stream = io.StringIO()
    with Display(4, 3, stream) as display:
        display.listen("known", TrialRecord(0, Outcome.COMPLETE, curve=(50.0,), taken=True))
        again = TrialRecord(1, Outcome.COMPLETE, curve=(50.0,), taken=True, replicate_of=0)
        display.listen("known", again)
        controller = controller_of(num_trials=4, listener=display.listen)
        train_some(controller, 2)
    assert all(" left)" in line for line in stream.getvalue().splitlines())


def test_a_terminal_gets_a_panel(controller_of: Make) -> None:
    text = run(controller_of, Terminal(), 3)
    assert "3/3 trials, 0 running" in text
    assert "network on the front" in text


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (75.4, "1:15"), (3723, "1:02:03")])
def test_times_read_like_a_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text
