"""Searches that end early, fail or are interrupted, and other ways to begin one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import vitnas
from tests.cli.conftest import SERIAL, space_file, vitnas_says
from tests.config.trees import CONV
from vitnas.cli import main
from vitnas.engine.store.study import read_run


@pytest.mark.slow
def test_a_space_of_two_networks_ends_early(capsys: pytest.CaptureFixture[str]) -> None:
    file = space_file({"stages": [CONV | {"mlp_ratio": {"choice": [1.0, 2.0]}}]})
    _, err = vitnas_says(capsys, "search", file, *SERIAL, "--out", "run", code=0)
    assert err == "vitnas: 2 of 3 trials: the space has nothing new to show\n"


@pytest.mark.slow
def test_the_image_size_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    """Every candidate is trained, scored and exported at its own size."""
    file = space_file({"img_size": {"choice": [8, [12, 8]]}})
    arguments = ("search", file, *SERIAL[:-3], "2", *SERIAL[-2:], "--out", "run")
    vitnas_says(capsys, *arguments, code=0)
    run = read_run("run")
    sizes = {str(trial.config["img_size"]): trial for trial in run.complete}
    assert sorted(sizes) == ["8", "[12, 8]"]
    assert all(trial.test_top1 is not None for trial in run.front)
    assert getattr(run.environment.data, "mean", None) is None
    chosen = str(sizes["[12, 8]"].number)
    vitnas_says(
        capsys, "export", "run", "--trial", chosen, "--to", "net", "--formats", "none", code=0
    )
    assert vitnas.load("net")(torch.zeros(1, 1, 12, 8)).shape == (1, 10)


def test_why_everything_failed_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vitnas.training.proxy import ProxyTraining

    def broken(self: ProxyTraining) -> object:
        raise ValueError("no such thing")

    monkeypatch.setattr(ProxyTraining, "__iter__", broken)
    out, _ = vitnas_says(capsys, "search", space_file({}), *SERIAL, "--out", "run", code=0)
    assert "1 of 1 trainings failed" in out
    assert "the first, trial 0: ValueError: no such thing" in out


def test_python_search_py_is_the_command() -> None:
    script = Path(__file__).resolve().parents[2] / "search.py"
    done = subprocess.run(
        [sys.executable, str(script), "nowhere.yaml"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "vitnas: nowhere.yaml: no such file or directory\n"


@pytest.mark.parametrize(
    ("command", "where", "said"),
    [
        ("search", "vitnas.api.load_space", "interrupted; the same command resumes"),
        ("replay", "vitnas.replay.tables.find_table", "interrupted\n"),
    ],
)
def test_ctrl_c_promises_nothing_that_is_not_so(
    command: str,
    where: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    with pytest.raises(SystemExit) as done:
        main([command])
    assert done.value.code == 130
    assert capsys.readouterr().err.startswith(f"vitnas: {said}")
