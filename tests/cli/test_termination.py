"""Real signals to this very process, to one that ignores Ctrl-C, and to a child."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import pytest

from tests.cli.conftest import vitnas_says
from vitnas.cli.termination import terminations_interrupt


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.01)  # Python hears of it between two of its instructions


def test_it_does_what_ctrl_c_does_there() -> None:
    before, done = signal.getsignal(signal.SIGTERM), list[int]()
    kept = signal.signal(signal.SIGINT, lambda number, frame: done.append(number))
    try:
        with terminations_interrupt() as heard:
            terminate()
    finally:
        signal.signal(signal.SIGINT, kept)
    assert heard == done == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_it_ends_a_command_also_where_ctrl_c_is_ignored(ctrl_c: Any) -> None:
    kept = signal.signal(signal.SIGINT, ctrl_c)
    try:
        with terminations_interrupt(), pytest.raises(KeyboardInterrupt):
            terminate()
    finally:
        signal.signal(signal.SIGINT, kept)


def test_a_forked_child_just_ends() -> None:
    with terminations_interrupt() as heard:
        child = os.fork()
        if not child:
            terminate()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
    assert (os.waitstatus_to_exitcode(status), heard) == (-signal.SIGTERM, [])


def test_a_command_says_one_line_and_its_exit_code_is_that_of_shells(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["vitnas.cli.app"], "app", lambda **_: terminate())
    out, err = vitnas_says(capsys, "train", "net.yaml", code=143)
    assert (out, err) == ("", "vitnas: interrupted; the same command resumes where it stopped\n")
