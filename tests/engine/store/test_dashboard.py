"""optuna-dashboard, the real one, opens study.db as it is: while a driver writes it and after."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import start, train, train_some
from vitnas.engine.decide.controller import Controller
from vitnas.engine.store.study import STUDY_NAME

pytestmark = pytest.mark.slow
Make = Callable[..., Controller]
_PATIENCE_S = 180.0


@contextmanager
def dashboard(file: Path) -> Iterator[Callable[[str], Any]]:
    """Starts it on a free port; yields what asks its API."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("optuna-dashboard")
    process = subprocess.Popen(
        [str(program), f"sqlite:///{file}", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def ask(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api{path}", timeout=30) as answer:
            return json.load(answer)

    try:
        end = time.monotonic() + _PATIENCE_S
        while True:
            try:
                ask("/studies")
                break
            except (urllib.error.URLError, ConnectionError):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.3)
        yield ask
    finally:
        process.terminate()
        process.wait(timeout=30)


def trials_seen(ask: Callable[[str], Any]) -> dict[int, dict[str, Any]]:
    (study,) = ask("/studies")["study_summaries"]
    assert study["study_name"] == STUDY_NAME
    assert study["directions"] == ["maximize", "minimize"]
    return {trial["number"]: trial for trial in ask(f"/studies/{study['study_id']}")["trials"]}


def test_it_shows_a_search_under_way_and_after(controller_of: Make, tmp_path: Path) -> None:
    controller = controller_of(num_trials=4)
    train_some(controller, 2)
    job = start(controller)
    controller.report(job.number, 1, 55.0)
    with dashboard(tmp_path / "study.db") as ask:
        seen = trials_seen(ask)
        assert len(seen) == 3
        assert seen[job.number]["state"] == "Running"
        done = controller.trials[0]
        assert seen[0]["state"] == "Complete"
        assert seen[0]["values"] == [done.top1, done.flops]
        told = {param["name"]: param["param_external_value"] for param in seen[0]["params"]}
        assert told == {name: str(value) for name, value in done.params.items()}
        train(controller, job)  # the driver goes on writing under its eyes
        time.sleep(11)  # it looks again every ten seconds
        assert trials_seen(ask)[job.number]["state"] == "Complete"
        controller.store.close()
    with dashboard(tmp_path / "study.db") as ask:
        assert len(trials_seen(ask)) == 3
