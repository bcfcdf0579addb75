"""Plain lines where there is no terminal, a panel where there is one."""

from __future__ import annotations

import io
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tests.engine.conftest import start, train, train_some
from tests.engine.decide.conftest import Make
from vitnas.engine.store.folder import locked
from vitnas.engine.watch.display import Display
from vitnas.engine.watch.progress import Progress
from vitnas.engine.watch.status import read_status
from vitnas.records import Outcome, TrialRecord


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
    assert "left" not in lines[-1], "nothing is left to train"


def test_a_resumed_run_counts_what_is_there(controller_of: Make) -> None:
    run(controller_of, io.StringIO(), 2)
    lines = run(controller_of, io.StringIO(), 3).splitlines()
    assert [line[:5] for line in lines] == ["[3/3]"]


def test_a_log_tells_what_is_done_once_a_training_has_started() -> None:
    """What fails before is one line, the error's."""
    stream = io.StringIO()
    with Display(3, 3, stream) as display:
        display.say("reading the images of digits")
        display.say("an escape \x1b[2J")
        assert not stream.getvalue()
        display.listen("start", TrialRecord(0, outcome=Outcome.RUNNING, started=1.0))
        display.say("scoring the front")
    assert stream.getvalue() == "an escape \\x1b[2J ...\nscoring the front ...\n"


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_no_line_holds_what_a_terminal_obeys(kind: type[io.StringIO]) -> None:
    stream = kind()
    with Display(3, 3, stream) as display:
        display.note("--start-from: measured on \x1b]0;own\x07")
    assert "measured on \\x1b]0;own\\x07" in stream.getvalue()
    assert "\x1b]0;own" not in stream.getvalue()


def test_a_long_training_is_not_silent(
    controller_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no panel shows the epochs, a line does after half a minute."""
    now = [0.0]
    monkeypatch.setattr("vitnas.engine.watch.display.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    with Display(1, 3, stream) as display:
        controller = controller_of(num_trials=1, listener=display.listen)
        job = start(controller)
        for epoch in (1, 2):
            now[0] += 20.0
            controller.report(job.number, epoch, 50.0)
    assert stream.getvalue().split() == ["trial", "0", "epoch", "2/3", "50.00", "%"]


def test_replicates_are_numbered_by_themselves() -> None:
    stream = io.StringIO()
    with Display(1, 1, stream) as display:
        trial = TrialRecord(0, outcome=Outcome.COMPLETE, curve=(50.0,))
        display.listen("end", trial)
        for number in (1, 2):
            again = replace(trial, number=number, replicate_of=0)
            display.listen("end", again)
    lines = stream.getvalue().splitlines()
    assert [line.split(" trial")[0] for line in lines] == [
        "[1/1]",
        "[replicate 1]",
        "[replicate 2]",
    ]
    assert "replicate of 0" in lines[2]


def test_nothing_is_printed_where_nobody_wants_it(
    controller_of: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    with Display(2, 3, shown=False) as display:
        display.say("starting")
        train_some(controller_of(num_trials=2, listener=display.listen), 2)
    assert capsys.readouterr().out == ""


def test_the_panel_and_the_status_say_the_same(
    controller_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reads what the controller tells, the other the study."""
    with monkeypatch.context() as earlier:
        minute_ago = time.time() - 60.0
        earlier.setattr(time, "time", lambda: minute_ago)
        progress = Progress(10, 3, ("flops",))
    controller = controller_of(num_trials=10, listener=progress.listen)
    started = datetime.now(timezone.utc) - timedelta(seconds=60)
    controller.store.set("environment", {"sessions": [{"started": started.isoformat()}]})
    controller.store.set("num_trials", 10)
    train_some(controller, 3)
    job = start(controller)
    controller.report(job.number, 1, 55.5)
    later = time.time() + 20.0
    monkeypatch.setattr(time, "time", lambda: later)
    with locked(tmp_path):
        status = read_status(tmp_path)
    pace = progress.pace()  # the two note a trial's start at moments that are not quite the same
    assert status.epochs_per_second == pytest.approx(pace.epochs_per_second, rel=0.1)
    assert status.seconds_left == pytest.approx(pace.seconds_left, rel=0.1)


def test_time_is_left_after_replicates_of_another_run(controller_of: Make) -> None:
    """Those of this run come when its trials are over, and their number is not known."""
    stream = io.StringIO()
    with Display(4, 3, stream) as display:
        display.listen("known", TrialRecord(0, outcome=Outcome.COMPLETE, curve=(50.0,), taken=True))
        again = TrialRecord(1, outcome=Outcome.COMPLETE, curve=(50.0,), taken=True, replicate_of=0)
        display.listen("known", again)
        controller = controller_of(num_trials=4, listener=display.listen)
        train_some(controller, 2)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert all(" left)" in line for line in lines)


def test_a_terminal_gets_a_panel(controller_of: Make) -> None:
    text = run(controller_of, Terminal(), 3)
    assert "3/3 trials, 0 running" in text
    assert text.count("[3/3] trial 2") == 1, "a line a trial stays above the panel"
