"""Replicates in real searches on digits: both back ends, a killed driver, test scores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.engine.conftest import make_space
from tests.engine.decide.conftest import facts, made
from vitnas.config.files import dump_yaml
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.store.study import read_run
from vitnas.exported.choose import choose_trial
from vitnas.records import Outcome
from vitnas.report.write import write_report
from vitnas.run import Run

pytestmark = pytest.mark.slow
OPTIONS = {
    "trials": 4,
    "replicates": 2,
    "sampler": "random",
    "gpus_per_trial": 0,
    "baselines": False,
}


def search(path: Path, backend: str, **more: object) -> Run:
    options = SearchOptions(**{**OPTIONS, "backend": backend, "workers": 1, **more})  # type: ignore[arg-type]
    return run_search(make_space(), path, options)


@pytest.mark.usefixtures("shared_ray")
def test_both_back_ends_make_the_same_replicates(tmp_path: Path) -> None:
    serial, ray = search(tmp_path / "serial", "serial"), search(tmp_path / "ray", "tune")
    assert facts(serial) == facts(ray)
    assert serial.replicates
    assert serial.chances == ray.chances
    assert {t.number for t in (*serial.confident, *serial.plausible)} <= set(made(serial))
    assert len({trial.curve for trial in (*serial.trials, *serial.replicates)}) > 4
    for trial in serial.front:
        assert trial.test_top1 is not None
    assert choose_trial(serial, knee=True) == serial.knee
    write_report(serial)
    assert "±" in (serial.path / "report.md").read_text(encoding="utf-8")


def test_replicates_of_a_finished_run_come_on_top(tmp_path: Path) -> None:
    before = search(tmp_path, "serial", replicates=0)
    after = search(tmp_path, "serial")
    assert facts(after)[: len(facts(before))] == facts(before)
    assert after.replicates
    assert all(trial.test_top1 is not None for trial in after.front)


def test_a_driver_killed_among_replicates_loses_and_repeats_none(tmp_path: Path) -> None:
    whole = search(tmp_path / "whole", "serial")
    space = tmp_path / "tiny.yaml"
    space.write_text(dump_yaml(make_space().to_tree()))
    command = [sys.executable, "-m", "vitnas", "search", str(space), "--out", str(tmp_path / "cut")]
    command += ["--trials", "4", "--replicates", "2", "--sampler", "random", "--backend", "serial"]
    command += ["--gpus-per-trial", "0", "--no-baselines"]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    for line in driver.stdout:
        if "replicate of" in line:
            break
    time.sleep(0.2)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    killed = read_run(tmp_path / "cut")
    assert killed.replicates
    subprocess.run(command, check=True, capture_output=True)
    cut = read_run(tmp_path / "cut")
    assert facts(cut) == facts(whole)
    assert not any(trial.outcome is Outcome.RUNNING for trial in cut.replicates)
