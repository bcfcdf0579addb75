"""What a run took, with what was refused and failed."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from vitnas.records import Outcome
from vitnas.report.page import render_pages
from vitnas.report.whole_cost import clock_seconds, cost_rows, costs_of, whole_cost_text

START = datetime.fromisoformat("2025-03-04T09:12:33+00:00").timestamp()


def told(*starts: str, **more: Any) -> dict[str, Any]:
    environment = deepcopy(ENVIRONMENT)
    (session,) = environment["sessions"]
    environment["sessions"] = [session | {"started": start} | more for start in starts]
    return environment


TRIALS = (
    trial(0, seconds=10.0, ended=START + 20),
    trial(1, 40.0, outcome=Outcome.STOPPED, seconds=4.0, ended=START + 3600 + 5),
    trial(2, None, outcome=Outcome.FAILED, seconds=2.0, gpu_seconds=3.0),
    trial(3, None, outcome=Outcome.REFUSED, seconds=None),
    trial(4, outcome=Outcome.DUPLICATE, seconds=None),
    trial(5, taken=True, seconds=99.0),
)
AGAIN = trial(6, replicate_of=0, seconds=8.0, ended=START + 3600 + 30)
SESSIONS = ("2025-03-04T09:12:33+00:00", "2025-03-04T10:12:33+00:00")


def test_time_by_outcome_with_all_that_was_for_nothing(tmp_path: Path) -> None:
    environment = told(*SESSIONS, gpus_per_trial=0.5)
    run = run_of(tmp_path, *TRIALS, replicates=(AGAIN,), environment=environment)
    found = {what: tuple(rest) for what, *rest in costs_of(run)}
    assert found == {
        "complete": (1, 10.0, 5.0),
        "stopped": (1, 4.0, 2.0),
        "failed": (1, 2.0, 3.0),  # with the attempts that were lost
        "refused": (1, 0, 0),
        "duplicate": (1, 0, 0),
        "taken over from another run": (1, 0, 0),
        "replicates": (1, 8.0, 4.0),
        "all": (7, 24.0, 14.0),
    }
    rows = {row["what"]: row for row in cost_rows(run)}
    assert rows["refused"]["seconds"] == "none"
    assert rows["all"]["gpu"] == "0.00389"
    for page in (render_pages(run, b"").markdown, render_pages(run, b"").html):
        assert "GPU-hours" in page
        assert whole_cost_text(run) in page


def test_on_the_cpu_there_are_no_gpu_hours(tmp_path: Path) -> None:
    run = run_of(tmp_path, *TRIALS[:2], environment=told(SESSIONS[0], gpus_per_trial=0.0))
    assert {row["gpu"] for row in cost_rows(run)} == {""}
    assert "GPU-hours" not in render_pages(run, b"").html
    silent = run_of(tmp_path, *TRIALS[:2])
    assert cost_rows(silent)[-1]["gpu"] == "–"
    assert costs_of(run_of(tmp_path)) == []


def test_by_the_clock_a_pause_between_sessions_does_not_count(tmp_path: Path) -> None:
    run = run_of(tmp_path, *TRIALS, replicates=(AGAIN,), environment=told(*SESSIONS))
    assert clock_seconds(run) == pytest.approx(50.0)
    assert "the sessions took 50 s" in whole_cost_text(run)
    assert clock_seconds(run_of(tmp_path, trial(0), environment=told(*SESSIONS))) is None
    assert clock_seconds(run_of(tmp_path, *TRIALS, environment=told("yesterday"))) is None
    assert "is not recorded" in whole_cost_text(run_of(tmp_path, trial(0)))


def test_baselines_and_tuning_count_each_of_their_trainings(tmp_path: Path) -> None:
    line = '{"key":"KEY","request":{},"answer":{"outcome":"complete","seconds":SECONDS}}\n'
    texts = [line.replace("KEY", key).replace("SECONDS", s) for key, s in (("a", "3"), ("b", "4"))]
    (tmp_path / "tune").mkdir()
    (tmp_path / "tune" / "tune.jsonl").write_text("".join(texts))
    (tmp_path / "baselines.jsonl").write_text("".join([*texts, texts[0]]))
    found = {what: tuple(rest) for what, *rest in costs_of(run_of(tmp_path, trial(0)))}
    assert found["tuning"][:2] == found["baselines"][:2] == (2, 7.0)
    assert found["all"][:2] == (5, 26.5)
    known = texts[1].replace("{", '{"taken":true,', 1)
    (tmp_path / "baselines.jsonl").write_text("".join([texts[0], known]))
    found = {what: tuple(rest) for what, *rest in costs_of(run_of(tmp_path, trial(0)))}
    assert found["baselines"][:2] == (1, 3.0)
    assert found["baselines of another run"][:2] == (1, 0)
    assert found["all"][:2] == (5, 22.5)
    (tmp_path / "tune" / "tune.jsonl").write_text("half a li")
    assert "tuning" not in {what for what, *_ in costs_of(run_of(tmp_path, trial(0)))}


def test_a_lost_training_without_a_time_leaves_the_others_known(tmp_path: Path) -> None:
    lost = trial(7, None, outcome=Outcome.OOM, seconds=None)
    run = run_of(tmp_path, trial(0), lost)
    found = {what: seconds for what, _, seconds, _ in costs_of(run)}
    assert found == {"complete": 12.5, "oom": None, "all": 12.5}
    assert "1 training has no time and" in whole_cost_text(run)
