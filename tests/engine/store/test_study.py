from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from tests.engine.conftest import make_space
from vitnas.engine.store.salvage import salvage
from vitnas.engine.store.study import STUDY_NAME, RunStore, differences, read_run
from vitnas.errors import RunError
from vitnas.records import Outcome


def open_store(path: Path, seed: int = 0) -> RunStore:
    return RunStore(path, {"space": make_space().to_tree(), "seed": seed})


def test_a_folder_without_a_study_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no study\.db in it"):
        read_run(tmp_path)
    with pytest.raises(RunError, match="missing: no such folder"):
        read_run(tmp_path / "missing")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"not a database at all" * 100, "file is not a database"),
        (b"", "no such table"),
        (b"SQLite format 3\x00" + b"x" * 500, "file is not a database"),
    ],
)
def test_a_damaged_study_says_what_is_left(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "study.db").write_bytes(content)
    message = rf"study\.db: cannot be read as a study \(.*{why}.*\); vitnas salvage"
    with pytest.raises(RunError, match=message):
        read_run(tmp_path)


class Killed(BaseException):
    """The driver is gone before a statement of SQL."""


def statements(path: Path, most: int) -> int:
    """Make a study, killed before statement number `most`; how many there were."""
    import sqlalchemy

    path.mkdir()
    seen = 0

    def count(*_: object) -> None:
        nonlocal seen
        if seen == most:
            raise Killed
        seen += 1

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", count)
    try:
        open_store(path).close()
    except Killed:
        pass
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", count)
    return seen


@pytest.mark.slow
def test_a_driver_killed_while_it_makes_the_study_leaves_a_run_without_trials(
    tmp_path: Path,
) -> None:
    whole, killed = statements(tmp_path / "whole", 10**9), 0
    for most in sorted({0, 9, *range(36, whole, 5), whole - 1}):
        folder = tmp_path / str(most)
        assert statements(folder, most) == most
        if (folder / "study.db").exists():  # it was whole, and only opened
            assert read_run(folder).trials == ()
            continue
        killed += 1
        for reads in (read_run, salvage):
            with pytest.raises(RunError, match=f"{most}: the run has no trials yet: "):
                reads(folder)
        open_store(folder).close()
        assert ((folder / "study.db").exists(), read_run(folder).trials) == (True, ())
        assert {file.name for file in folder.iterdir()} <= {"study.db", ".lock"}
    assert killed >= 8


def test_what_is_told_is_read_back(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    number = store.ask().number
    store.describe(number, "network", {"key": "abc", "flops": 7, "num_params": 3, "seed": 1})
    store.describe(number, "curve", [50.0, 60.0])
    store.tell(number, Outcome.COMPLETE, (60.0, 7.0), seconds=1.5, device="cpu")
    store.describe_ended(number, "test_top1", 59.0)
    store.close()
    (trial,) = read_run(tmp_path).trials
    assert (trial.key, trial.flops, trial.num_params, trial.seed) == ("abc", 7, 3, 1)
    assert (trial.curve, trial.top1, trial.test_top1) == ((50.0, 60.0), 60.0, 59.0)
    assert (trial.outcome, trial.seconds, trial.device) == (Outcome.COMPLETE, 1.5, "cpu")


def test_optuna_reads_the_study_as_it_is(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    number = store.ask().number
    store.tell(number, Outcome.COMPLETE, (60.0, 7.0))
    store.close()
    study = optuna.load_study(study_name=STUDY_NAME, storage=f"sqlite:///{tmp_path}/study.db")
    assert [trial.values for trial in study.best_trials] == [[60.0, 7.0]]


def test_a_run_of_another_seed_is_refused(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    with pytest.raises(RunError, match="is a run of another seed: 0 -> 1"):
        open_store(tmp_path, seed=1)


def test_a_run_of_another_format_is_refused(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.set("format", 99)
    store.close()
    with pytest.raises(RunError, match="format 99, this vitnas reads 1"):
        open_store(tmp_path)


def test_differences_name_every_leaf() -> None:
    old = {"name": "a", "model": {"stages": [{"depth": 1}, {"depth": 2}], "x": [1]}}
    new = {"name": "b", "model": {"stages": [{"depth": 1}, {"depth": 3, "y": 1}], "x": [1, 2]}}
    assert list(differences(old, new)) == [
        "model.stages[1].depth: 2 -> 3",
        "model.stages[1].y: null -> 1",
        "model.x: [1] -> [1, 2]",
    ]
    assert list(differences(old, old)) == []
