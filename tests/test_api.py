"""The verbs from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vitnas
from tests.engine.conftest import make_space

OPTIONS: dict[str, Any] = {"trials": 2, "backend": "serial", "gpus_per_trial": 0.0, "replicates": 0}


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


def test_a_run_and_a_trial_have_a_short_repr(tmp_path: Path) -> None:
    run = vitnas.search(make_space(), tmp_path, progress=False, **OPTIONS)
    assert repr(run) == f"Run('{tmp_path}', 2 trials, 2 complete, {len(run.front)} on the front)"
    trial = run.trials[0]
    assert repr(trial) == f"TrialRecord(0, complete, top1={trial.top1:.2f}, flops={trial.flops})"
