"""The files of a report: of odd runs, of large ones, without torch; what is not ours stays."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.runs import invented_run, run_of, trial
from tests.report.test_page import without_plotly
from vitnas.config.model import load_config
from vitnas.errors import RunError
from vitnas.records import Outcome
from vitnas.report import write_report
from vitnas.run import Run
from vitnas.sessions import Environment

FILES = {"trials.csv", "front.csv", "front.png", "report.md", "report.html"}


def test_a_report_is_these_files_and_nothing_else(tmp_path: Path) -> None:
    run = invented_run(tmp_path / "run", 60)
    write_report(run)
    assert {path.name for path in run.path.iterdir()} == FILES | {"configs"}
    names = {path.name for path in (run.path / "configs").iterdir()}
    assert names == {f"{member.number}.yaml" for member in run.complete}


def test_a_folder_s_name_that_is_no_utf_8_is_spelled_out(tmp_path: Path) -> None:
    run = run_of(tmp_path / os.fsdecode(b"a\xff"), trial(0, 90.0, 1000))
    run.path.mkdir()
    write_report(run)
    assert "of a\\udcff, space" in (run.path / "configs" / "0.yaml").read_text()


def test_configs_read_back_and_say_where_they_come_from(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 40)
    write_report(run)
    for member in run.front:
        path = tmp_path / "configs" / f"{member.number}.yaml"
        assert load_config(path).to_tree() == member.config
        head = path.read_text().partition("\nname:")[0]
        assert (
            f"Trial {member.number} of {tmp_path.name}, space hybrid_cifar, on the front." in head
        )
        assert f"{member.flops:,} FLOPs" in head
        assert "data cifar10" in head
        assert "git 40a507c81f2e" in head


def test_writing_twice_changes_no_config(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 10)
    write_report(run)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "configs").iterdir()}
    write_report(run)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_model_files_are_not_written_through_a_link(tmp_path: Path) -> None:
    theirs = tmp_path / "etc"
    theirs.mkdir()
    (theirs / "0.yaml").write_text("mine")
    run = run_of(tmp_path / "run", trial(0))
    run.path.mkdir()
    (run.path / "configs").symlink_to(theirs)
    with pytest.raises(RunError, match="configs: is a link"):
        write_report(run)
    assert (theirs / "0.yaml").read_text() == "mine"


def test_a_pipe_in_the_place_of_a_model_file_is_replaced(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", trial(0))
    (run.path / "configs").mkdir(parents=True)
    os.mkfifo(run.path / "configs" / "0.yaml")
    write_report(run)
    assert (run.path / "configs" / "0.yaml").is_file()


@pytest.mark.parametrize("name", ["report.html", "trials.csv", "front.png"])
def test_the_file_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    run = run_of(tmp_path / "run", trial(0))
    (run.path / name).mkdir(parents=True)
    with pytest.raises(RunError, match=f"{name}: the report cannot be written"):
        write_report(run)


def odd_runs() -> dict[str, Run]:
    failed = trial(0, None, outcome=Outcome.FAILED, error="worker lost", flops=0, config={})
    path = Path("results/odd")
    return {
        "empty": run_of(path),
        "bare": Run(path, "bare", (trial(0),), {}, Environment(), 10),
        "failed only": run_of(path, failed),
        "refused only": run_of(path, trial(0, None, outcome=Outcome.REFUSED, error="too dear")),
        "running": run_of(path, trial(0, 40.0, outcome=Outcome.RUNNING)),
        "stopped only": run_of(path, trial(0, 40.0, outcome=Outcome.STOPPED)),
        "one": run_of(path, trial(0)),
        "two": run_of(path, trial(0), trial(1, 60.0, 2_000_000)),
        "all alike": run_of(path, *(trial(number) for number in range(9))),
        "all wrong": run_of(path, *(trial(n, 0.0, 10**n) for n in range(5))),
        "all right": run_of(path, *(trial(n, 100.0, 10 ** (9 - n)) for n in range(5))),
        "nan": run_of(path, trial(0, float("nan")), trial(1, 30.0)),
        "no curve": run_of(path, trial(0, None), trial(1, 30.0, 0)),
        "odd facts": run_of(
            path,
            trial(0),
            space={"limits": None},
            environment={"sessions": [{"hardware": {}}], "data": {"name": None}, "proxy": {}},
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", odd_runs())
def test_odd_runs_have_a_report(name: str, tmp_path: Path) -> None:
    run = odd_runs()[name]
    run = Run(**{**vars(run), "path": tmp_path / "run"})
    write_report(run)
    assert {path.name for path in run.path.iterdir()} >= FILES
    assert not re.search(r"\bnan\b|\bNone\b", without_plotly((run.path / "report.md").read_text()))


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        RunError, match=r"file/run/front.png: the report cannot be written"
    ) as caught:
        write_report(invented_run(tmp_path / "file" / "run", 5))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_a_report_needs_neither_torch_nor_ray(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.report.runs import invented_run; "
        "from vitnas.report import write_report; "
        f"write_report(invented_run(Path({str(tmp_path)!r}), 20)); "
        "print([name for name in ('torch', 'ray', 'optuna', 'timm') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_a_thousand_trials_stay_a_small_page(tmp_path: Path) -> None:
    run = invented_run(tmp_path, 1000)
    write_report(run)
    assert (tmp_path / "report.html").stat().st_size < 4e6
