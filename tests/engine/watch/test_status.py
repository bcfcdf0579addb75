"""`vitnas status`: a run at a glance, also while its driver is at work."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tests.config.test_baseline import DIGITS
from tests.engine.conftest import start, train, train_some
from tests.report.runs import run_of, tree, trial
from tests.test_longer import training
from vitnas.config.training import ProxyConfig
from vitnas.engine.batch.book import Book
from vitnas.engine.batch.references import FILE_NAME
from vitnas.engine.batch.request import Answer, Request
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.replicates import Replication
from vitnas.engine.store.folder import locked
from vitnas.engine.watch.status import read_status, status_text
from vitnas.errors import RunError
from vitnas.longer import add
from vitnas.records import Outcome

Make = Callable[..., Controller]


@pytest.fixture
def searching(controller_of: Make) -> Controller:
    """Two trials ended, one after its first epoch, a long run still to go."""
    controller = controller_of(num_trials=10)
    controller.store.set("num_trials", 10)
    started = {"started": "2020-01-01T00:00:00+00:00", "workers": 1}
    controller.store.set("environment", {"sessions": [started]})
    train_some(controller, 2)
    job = start(controller)
    controller.report(job.number, 1, 55.5)
    return controller


def test_a_search_under_way(searching: Controller, tmp_path: Path) -> None:
    with locked(tmp_path):
        status = read_status(tmp_path)
    assert status.is_searching
    assert (status.num_ended, status.num_trials, status.epochs) == (2, 10, 3)
    assert status.counts["complete"] == 2
    (underway,) = status.underway
    assert (underway.epoch, underway.top1) == (1, 55.5)
    assert status.best_top1 == max(t.top1 or 0.0 for t in searching.trials[:2])
    assert status.front_size >= 1
    assert status.epochs_per_second is not None
    assert status.seconds_left is not None
    assert 0 < status.seconds_left < 60, "4 s, were this machine quiet: their seconds are made up"
    text = status_text(status)
    assert "2/10 trials, searching" in text
    assert "epoch 1/3  55.50 %" in text
    assert " left" in text


def test_baselines_are_counted_apart(searching: Controller, tmp_path: Path) -> None:
    assert "2/10 trials, not searching" in status_text(read_status(tmp_path))
    searching.store.set("num_baselines", 3)
    assert "2/10 trials, 0/3 baselines, not searching" in status_text(read_status(tmp_path))
    request = Request(DIGITS, searching.space.config.proxy, 0)
    Book(tmp_path / FILE_NAME).put(request, Answer(outcome=Outcome.FAILED))
    assert "1/3 baselines" in status_text(read_status(tmp_path))
    searching.store.set("num_baselines", 0)
    assert "1/1 baselines" in status_text(read_status(tmp_path))


def test_baselines_after_the_trials_are_told(searching: Controller, tmp_path: Path) -> None:
    """Learning rates of the baselines may take as long as the trials: that is no search."""
    with locked(tmp_path):
        status = replace(read_status(tmp_path), num_ended=10, underway=(), most_baselines=3)
    assert "10/10 trials, 0/3 baselines, training baselines, " in status_text(status)
    again = replace(status, num_baselines=3)
    assert "3/3 baselines, training some baselines again, " in status_text(again)
    assert "10/10 trials, searching, " in status_text(replace(status, most_baselines=0))
    assert "10 trials, 0/3 baselines, searching, " in status_text(replace(status, num_trials=None))
    assert "not searching, " in status_text(replace(status, is_searching=False))


def test_long_trainings_are_counted(searching: Controller, tmp_path: Path) -> None:
    status = read_status(tmp_path)
    assert (status.num_long, status.best_long) == (0, None)
    assert "long training" not in status_text(status)
    for index, top1 in enumerate((70.0, 80.0, 75.0)):
        one = searching.trials[index % 2]
        add(tmp_path, training(one.number, key=one.key, top1=top1, seed=index))
    status = read_status(tmp_path)
    assert "  3 long trainings; best 80.00 % (trial 1, 30 epochs), 96.00 % on test" in (
        status_text(status)
    )
    told = status.to_json()
    assert (told["num_long"], told["best_long"]["trial"], told["best_long"]["top1"]) == (3, 1, 80.0)


def test_a_search_that_was_killed(searching: Controller, tmp_path: Path) -> None:
    status = read_status(tmp_path)
    assert not status.is_searching
    assert status.seconds_left is None
    text = status_text(status)
    assert "not searching" in text
    assert "interrupted at epoch 1/3" in text


def test_a_session_of_replicates_alone_has_lasted_until_the_last_of_them(
    controller_of: Make, tmp_path: Path
) -> None:
    """Its trials ended before it began."""
    first = controller_of(num_trials=2)
    train_some(first, 2)
    first.store.close()
    again = controller_of(num_trials=2, replication=Replication(1, 400))
    now = datetime.now(timezone.utc).isoformat()
    again.store.set("environment", {"sessions": [{"started": now}]})
    job = start(again)
    assert job.again
    time.sleep(0.1)
    train(again, job)
    status = read_status(tmp_path)
    assert status.num_replicates == 1
    assert status.seconds >= 0.1
    assert status.epochs_per_second is not None
    assert status.epochs_per_second <= 3 / 0.1, "three epochs in all that time"


def test_a_session_of_baselines_alone_has_lasted_until_the_last_of_them(
    controller_of: Make, tmp_path: Path
) -> None:
    controller = controller_of(num_trials=2)
    train_some(controller, 2)
    now = datetime.now(timezone.utc).isoformat()
    controller.store.set("environment", {"sessions": [{"started": now}]})
    time.sleep(0.1)
    answer = Answer(outcome=Outcome.COMPLETE, curve=(50.0,))
    book = Book(tmp_path / FILE_NAME)
    book.put(Request(DIGITS, ProxyConfig(), 0), answer)
    once = read_status(tmp_path).seconds
    assert once >= 0.1
    time.sleep(0.1)
    book.put(Request(DIGITS, ProxyConfig(), 1), answer)
    assert read_status(tmp_path).seconds >= once + 0.1, "a further training of the same baseline"


def test_a_session_without_end_says_why_it_ended(searching: Controller, tmp_path: Path) -> None:
    session = {"started": "not a time", "ended_by": "the time is up"}
    searching.store.set("environment", {"sessions": [session]})
    searching.store.set("num_trials", 0)
    status = read_status(tmp_path)
    assert status.num_trials is None
    assert status.seconds < 3600, "the first trial's start is the next best"
    assert "2 trials, not searching" in status_text(status)
    assert "1 trial, not searching" in status_text(replace(status, num_ended=1))
    assert "ended: the time is up" in status_text(status)


def test_nothing_yet(controller_of: Make, tmp_path: Path) -> None:
    controller_of()
    status = read_status(tmp_path)
    assert (status.counts, status.underway, status.best_top1) == ({}, (), None)
    assert "nothing drawn yet" in status_text(status)
    with pytest.raises(RunError, match="no such folder"):
        read_status(tmp_path / "nowhere")


@pytest.mark.slow
def test_the_command_while_a_driver_holds_the_run(searching: Controller, tmp_path: Path) -> None:
    """In a process of its own, with the driver's connection open; neither torch nor Ray."""
    code = (
        "import sys; from vitnas.cli import main\n"
        f"try: main(['status', {str(tmp_path)!r}, '--json'])\n"
        "finally: print(*{'torch', 'ray'} & set(sys.modules), file=sys.stderr)"
    )
    with locked(tmp_path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    told = json.loads(done.stdout)
    assert told["is_searching"] is True
    assert told["counts"] == {"complete": 2, "running": 1}
    assert told["underway"][0]["epoch"] == 1
    job = start(searching)
    train(searching, job)
    assert searching.trials[job.number].outcome is Outcome.COMPLETE


def test_networks_under_way_tell_image_sizes_that_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    running = [
        trial(number, None, outcome=Outcome.RUNNING, config=tree() | {"img_size": size})
        for number, size in enumerate((32, 64))
    ]
    for number, sized in ((1, False), (2, True)):
        run = run_of(Path("r"), *running[:number])
        monkeypatch.setattr("vitnas.engine.watch.status.read_run", lambda _, run=run: run)
        lines = [one.network for one in read_status("r").underway]
        assert ["img_size" in line for line in lines] == [sized] * number
