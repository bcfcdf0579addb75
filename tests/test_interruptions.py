"""Searches that are killed, interrupted, or started twice: real processes, real Ray."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.config.trees import TREE
from vitnas.engine.store.study import read_run
from vitnas.engine.watch.status import read_status
from vitnas.errors import RunError
from vitnas.records import Outcome

pytestmark = pytest.mark.slow
_PATIENCE_S = 300.0


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A search of eight trials by two workers of Ray into `tmp_path/run`."""
    tree = TREE | {"proxy": {"epochs": 4, "batch_size": 32}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    return [
        *(sys.executable, "-m", "vitnas", "search", str(tmp_path / "tiny.yaml")),
        *("--trials", "8", "--workers", "2", "--gpus-per-trial", "0", "--no-prune"),
        "--no-baselines",
        *("--out", str(tmp_path / "run")),
    ]


def _heed_interrupts() -> None:
    """A shell lets what it starts in the background ignore Ctrl-C, and processes inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(command: list[str], ended: int) -> subprocess.Popen[str]:
    """The command as a process of its own group, when it has told of so many ended trials."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_heed_interrupts,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None
    while ended:
        line = process.stdout.readline()
        assert line
        ended -= line.startswith("[")
    return process


def assert_whole(run: Path) -> None:
    """Eight trainings, each of another network, none lost, none left open."""
    trials = read_run(run).trials
    ended = [trial for trial in trials if trial.outcome.is_trial]
    assert [trial.outcome for trial in ended] == [Outcome.COMPLETE] * 8
    assert len({trial.key for trial in ended}) == 8
    assert not [trial for trial in trials if trial.outcome is Outcome.RUNNING]
    assert not (run / ".tune").exists()


def ray_of(pid: int) -> list[str]:
    """Ray's processes of the session that the driver `pid` started."""
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if f"_{pid}/" in line and "ray" in line]


def wait_until(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + _PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.5)
    return True


@pytest.mark.parametrize("ended", [pytest.param(1, marks=pytest.mark.nightly), 4])
def test_kill_9_loses_nothing_and_repeats_nothing(
    command: list[str], tmp_path: Path, ended: int
) -> None:
    process = start(command, ended)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=_PATIENCE_S)
    before = read_run(tmp_path / "run").complete
    assert len(before) >= ended
    assert wait_until(lambda: not ray_of(process.pid)), "orphans of Ray"
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert_whole(tmp_path / "run")
    after = {trial.number: trial for trial in read_run(tmp_path / "run").complete}
    assert all(after[trial.number].curve == trial.curve for trial in before)


FINISHING = r"vitnas: finishing what is running \(\d\); Ctrl-C again stops now\n"
RESUMABLE = r"vitnas: interrupted; the same command resumes where it stopped\n"


def assert_reported(run: Path) -> None:
    for name in ("trials.csv", "front.csv", "front.png", "report.md", "report.html"):
        assert (run / name).is_file()


def interrupt(process: subprocess.Popen[str], number: signal.Signals) -> None:
    """Ctrl-C reaches the whole group; a system ends the one process that it started."""
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)


def by(*nightly: tuple[str, signal.Signals]) -> pytest.MarkDecorator:
    """Each back end with each signal; those named here are `nightly` ones."""
    ways = [("tune", signal.SIGINT), ("serial", signal.SIGINT), ("tune", signal.SIGTERM)]
    marked = [pytest.param(*one, marks=[pytest.mark.nightly] * (one in nightly)) for one in ways]
    return pytest.mark.parametrize(("backend", "number"), marked)


@by(("serial", signal.SIGINT), ("tune", signal.SIGTERM))
def test_ctrl_c_finishes_what_is_running(
    command: list[str], tmp_path: Path, backend: str, number: signal.Signals
) -> None:
    command += ["--backend", backend]
    process = start(command, 2)
    interrupt(process, number)
    _, said = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 128 + number
    assert re.fullmatch(FINISHING + RESUMABLE, said), said
    run = read_run(tmp_path / "run")
    assert not run.count(Outcome.RUNNING)
    assert 2 <= len(run.complete) < 8
    assert_reported(tmp_path / "run")
    assert wait_until(lambda: not ray_of(process.pid)), "orphans of Ray"
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert_whole(tmp_path / "run")


@by(("tune", signal.SIGINT), ("serial", signal.SIGINT))
def test_ctrl_c_twice_stops_now(
    command: list[str], tmp_path: Path, backend: str, number: signal.Signals
) -> None:
    """Trainings of 2,000 epochs, which nobody would wait for."""
    tree = TREE | {"proxy": {"epochs": 2000, "batch_size": 32}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    command += ["--backend", backend]
    process = start(command, 0)
    run = tmp_path / "run"
    assert wait_until(lambda: is_under_way(run)), last_words(process)
    interrupt(process, number)
    time.sleep(1.0)
    interrupt(process, number)
    _, said = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 128 + number
    assert re.fullmatch(FINISHING + RESUMABLE, said), said
    assert read_run(run).count(Outcome.RUNNING) == (2 if backend == "tune" else 1)
    assert_reported(run)
    assert not (run / ".tune").exists()
    assert wait_until(lambda: not ray_of(process.pid)), "orphans of Ray"


def last_words(process: subprocess.Popen[str]) -> str:
    """Kill it and return what it had said."""
    os.killpg(process.pid, signal.SIGKILL)
    return "".join(process.communicate())


def is_under_way(run: Path) -> bool:
    """Whether every trial that has been drawn has an epoch behind it; two of them with Ray."""
    if not (run / "study.db").is_file():
        return False
    try:
        status = read_status(run)
    except RunError:  # its tables are being made
        return False
    return bool(status.underway) and all(one.epoch for one in status.underway)


def test_ctrl_c_before_anything_is_written(command: list[str], tmp_path: Path) -> None:
    # Python loses an interrupt that arrives in a destructor.
    for wait in (1.0, 0.6, 1.4, 0.3, 0.1):  # somewhere in its imports
        process = start(command, 0)
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=_PATIENCE_S)
        if process.returncode in (130, -signal.SIGINT):
            break
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
    assert process.returncode in (130, -signal.SIGINT)
    assert not (tmp_path / "run").exists()
    assert process.returncode != 130 or said.count("\n") == 1


def test_a_second_driver_is_refused_and_the_first_is_not_disturbed(
    command: list[str], tmp_path: Path
) -> None:
    first = start(command, 1)
    second = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    assert (second.returncode, second.stdout) == (2, "")
    assert second.stderr.endswith("run: another search is writing to this run\n")
    assert second.stderr.count("\n") == 1
    _, said = first.communicate(timeout=_PATIENCE_S)
    assert (first.returncode, said) == (0, "")
    assert_whole(tmp_path / "run")


def in_a_terminal(*arguments: str) -> tuple[int, str]:
    """Exit code and everything that `vitnas` writes to a terminal of 100 columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ |= {"COLUMNS": "100", "OMP_NUM_THREADS": "1"}
        os.execv(sys.executable, [sys.executable, "-m", "vitnas", *arguments])
    written = b""
    try:
        while part := os.read(terminal, 1 << 16):
            written += part
    except OSError:  # how Linux says that the other end is closed
        pass
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), written.decode()


def test_the_default_back_end_on_a_terminal(command: list[str]) -> None:
    """The live panel holds the terminal, which Ray once tried to pickle with the search."""
    code, written = in_a_terminal(*command[3:], "--trials", "2")
    assert code == 0, written
    assert "[2/2] trial" in written
    assert "Traceback" not in written
    last = written.rsplit("\x1b[?25h", 1)[-1]
    assert "top-1 %" in last
    assert "report.html" in last
