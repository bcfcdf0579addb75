"""Spaces and runs from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vitnas
from tests.engine.conftest import make_space
from vitnas.run import Run

OPTIONS: dict[str, Any] = {
    "trials": 2,
    "backend": "serial",
    "gpus_per_trial": 0.0,
    "replicates": 0,
    "baselines": False,
}


@pytest.mark.slow
def test_a_search_shows_its_progress_unless_told_not_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = vitnas.search(make_space(), tmp_path / "run", **OPTIONS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("starting 1 worker for 2 trainings of 3 epochs, about ")
    assert [line[:5] for line in lines[1:3]] == ["[1/2]", "[2/2]"]
    assert lines[3] == "scoring the front on the test images ..."
    assert lines[-1] == "writing the report ..."
    again = vitnas.search(make_space(), tmp_path / "run", progress=False, **OPTIONS)
    assert capsys.readouterr().out == ""
    assert again.trials == run.trials


@pytest.mark.slow
def test_a_report_is_there_before_the_baselines(tmp_path: Path) -> None:
    """They take longer than the trials, and the front does not depend on them."""
    folder = tmp_path / "run"
    said: list[str] = []
    found: list[bool] = []

    def notice(line: str) -> None:
        said.append(line)
        found.append("## The baselines" in (folder / "report.md").read_text())

    vitnas.search(make_space(), folder, notice=notice, **OPTIONS | {"baselines": True})
    assert said == [f"the report so far, before the baselines: {folder / 'report.html'}"]
    assert found == [False]
    assert "## The baselines" in (folder / "report.md").read_text()


@pytest.mark.slow
def test_a_run_and_a_trial_have_a_short_repr(searched: Run) -> None:
    front = f"{len(searched.front)} on the front"
    assert repr(searched) == f"Run('{searched.path}', 3 trials, 3 complete, {front})"
    trial = searched.trials[0]
    assert repr(trial) == f"TrialRecord(0, complete, top1={trial.top1:.2f}, flops={trial.flops})"
