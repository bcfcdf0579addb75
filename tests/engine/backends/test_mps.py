"""MPS is started for a search, used where it works, and ended. The service is a script here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vitnas.engine.backends import mps
from vitnas.engine.backends.mps import shared_cards

SERVICE = """#!/bin/sh
if [ "$1" = -d ]; then echo "start $CUDA_MPS_PIPE_DIRECTORY" >> "$LOG"; exit $STARTS; fi
read command; echo "$command $CUDA_MPS_PIPE_DIRECTORY" >> "$LOG"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the service was told; it is the only one on the path, and answers."""
    service = tmp_path / "bin" / "nvidia-cuda-mps-control"
    service.parent.mkdir()
    service.write_text(SERVICE)
    service.chmod(0o755)
    monkeypatch.setenv("PATH", f"{service.parent}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("STARTS", "0")
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY", raising=False)
    monkeypatch.setattr(mps, "_USUAL", tmp_path / "none")
    monkeypatch.setattr(mps, "_PROBE", "")
    return tmp_path / "log"


def said(log: Path) -> list[str]:
    return [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []


def test_it_runs_for_what_is_started_inside(log: Path) -> None:
    with shared_cards() as (by_mps, line):
        assert by_mps
        assert line == "trainings share each GPU by MPS"
        folder = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
        assert Path(folder).is_dir()
        assert said(log) == ["start"]
    assert log.read_text().split() == ["start", folder, "quit", folder]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
    assert not Path(folder).exists()


def test_it_ends_also_where_the_search_fails(log: Path) -> None:
    with pytest.raises(KeyboardInterrupt), shared_cards():
        raise KeyboardInterrupt
    assert said(log) == ["start", "quit"]


def test_without_it_trainings_take_turns(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    with shared_cards() as (by_mps, line):
        assert not by_mps
        assert "nvidia-cuda-mps-control is not installed" in line
        assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ


@pytest.mark.parametrize(
    ("starts", "probe", "reason", "told"),
    [
        ("1", "", "exit status 1", ["start"]),
        ("0", "raise SystemExit(100)", "no process can use a card with it", ["start", "quit"]),
    ],
)
def test_where_it_does_not_work_it_is_not_used(
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    starts: str,
    probe: str,
    reason: str,
    told: list[str],
) -> None:
    monkeypatch.setenv("STARTS", starts)
    monkeypatch.setattr(mps, "_PROBE", probe)
    with shared_cards() as (by_mps, line):
        assert line.startswith("trainings on one GPU take turns: MPS does not work here (")
        assert not by_mps
        assert reason in line
        assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
        assert said(log) == told
    assert said(log) == told


def test_one_that_runs_already_is_used_and_left_alone(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/elsewhere")
    with shared_cards() as (by_mps, line):
        assert by_mps
        assert line == "trainings share each GPU by the MPS that runs here"
    assert os.environ["CUDA_MPS_PIPE_DIRECTORY"] == "/elsewhere"
    assert said(log) == []
