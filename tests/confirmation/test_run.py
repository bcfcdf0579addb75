"""Long trainings in processes of their own, and what the run has of them."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from vitnas import api
from vitnas.confirmation.jobs import FOLDER, jobs_of
from vitnas.confirmation.options import ConfirmOptions
from vitnas.confirmation.run import run_confirmation
from vitnas.errors import DataError, RunError
from vitnas.longer import FILE_NAME
from vitnas.report.long_against import long_against
from vitnas.run import Run

OPTIONS = ConfirmOptions(networks=1, epochs=2, workers=2, device="cpu")


@pytest.fixture
def run(searched: Run, tmp_path: Path) -> Run:
    """A real run in a folder of its own."""
    shutil.copytree(searched.path, tmp_path / "run")
    return api.load_run(tmp_path / "run")


@pytest.mark.slow
def test_the_result_is_in_the_run_and_is_not_trained_again(run: Run) -> None:
    told: list[str] = []
    found = run_confirmation(run.path, OPTIONS, told.append)
    (one,) = long_against(found)
    assert run.knee is not None
    assert one.ours.trial == run.knee.number
    assert one.theirs.baseline.startswith("vgg-")
    assert one.on_test
    folders = {Path(training.folder).name for training in found.long.trainings}
    assert folders == {path.name for path in (run.path / FOLDER).iterdir()}
    assert len(told) == 1 + len(folders)
    assert f"of like FLOPs, {len(folders)} trainings of 2 epochs" in told[0]
    lines = (run.path / FILE_NAME).read_text()
    for training in found.long.trainings:
        assert any(f"{training.top1:.2f} %" in line for line in told[1:])
    run_confirmation(run.path, OPTIONS, told.append)
    assert told[-1].endswith(f", {len(folders)} of them done already")
    assert (run.path / FILE_NAME).read_text() == lines


@pytest.mark.slow
def test_ctrl_c_ends_all_and_the_same_command_resumes(run: Run) -> None:
    command = [sys.executable, "-m", "vitnas", "confirm", str(run.path), "--networks", "1"]
    command += ["--device", "cpu", "--workers", "2", "--epochs"]
    driver = subprocess.Popen([*command, "5000"], stderr=subprocess.PIPE, text=True)
    logs = run.path / FOLDER
    deadline = time.monotonic() + 300
    while len(list(logs.glob("*.training/log.jsonl"))) < 2:
        assert driver.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    driver.send_signal(signal.SIGINT)
    _, said = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert said.endswith("vitnas: interrupted; the same command resumes where it stopped\n")
    before = {path: path.read_text() for path in logs.glob("*.training/log.jsonl")}
    time.sleep(1)
    assert {path: path.read_text() for path in before} == before, "no training goes on"
    assert not (run.path / FILE_NAME).exists()


def test_images_that_are_gone_are_told_before_anything_is_trained(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = {"name": "imagefolder", "root": str(tmp_path / "leaves")}
    moved = replace(run, space={**run.space, "data": data})
    monkeypatch.setattr("vitnas.confirmation.run.read_run", lambda _: moved)
    told: list[str] = []
    with pytest.raises(DataError, match="leaves: no such folder"):
        run_confirmation(run.path, OPTIONS, told.append)
    assert told == []
    assert not (run.path / FOLDER).exists()


@pytest.mark.slow
def test_what_fails_is_told_and_if_all_fail_it_is_an_error(run: Run) -> None:
    """Each folder's name is taken by a file that cannot be a training's working folder."""
    told: list[str] = []
    assert run.knee is not None
    jobs, _ = jobs_of(run, OPTIONS)
    blocked = [job.folder(run.path) for job in jobs if job.trial is not None]
    (run.path / FOLDER).mkdir()
    for folder in blocked:
        folder.with_name(f"{folder.name}.training").write_text("mine")
    found = run_confirmation(run.path, OPTIONS, told.append)
    assert {one.trial for one in found.long.trainings} == {None}
    lines = [line for line in told if "failed" in line]
    assert len(lines) == len(blocked)
    for folder in blocked:
        assert any(f"{folder.name}.training" in line for line in lines)
    assert all(f"trial {run.knee.number}" in line for line in lines)
    for path in list((run.path / FOLDER).iterdir()):
        if path.is_dir():
            shutil.rmtree(path)
            (path.parent / f"{path.name}.training").write_text("mine")
    with pytest.raises(RunError, match=r"none of \d long trainings reached its end"):
        run_confirmation(run.path, OPTIONS, told.append)
