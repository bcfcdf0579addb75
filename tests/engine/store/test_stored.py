"""A study may come from anybody: a value of another type in it is one line that names it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import make_space
from vitnas.engine.store.study import RunStore, read_run
from vitnas.errors import RunError
from vitnas.records import Outcome

NETWORK = {"config": {"name": "n"}, "key": "abc", "flops": 7, "num_params": 3, "seed": 1}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two complete trials."""
    path = tmp_path_factory.mktemp("original")
    store = open_run(path)
    for _ in range(2):
        number = store.ask().number
        store.describe(number, "network", NETWORK)
        store.describe(number, "curve", [50.0, 60.0])
        store.tell(number, Outcome.COMPLETE, (60.0, 7.0), seconds=1.5, device="cpu")
    store.set("environment", {"sessions": [{"command": "vitnas"}], "data": {"num_val_images": 5}})
    store.close()
    return path


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path


def open_run(path: Path) -> RunStore:
    return RunStore(path, {"space": make_space().to_tree(), "seed": 0})


def sql(run: Path, *statement: Any) -> None:
    connection = sqlite3.connect(run / "study.db")
    connection.execute(*statement)
    connection.commit()
    connection.close()


def put(run: Path, table: str, key: str, value: Any) -> None:
    text = json.dumps(value)
    where = "key = ?" if table == "study" else "key = ? and trial_id = 1"
    sql(run, f"update {table}_user_attributes set value_json = ? where {where}", (text, key))


TRIAL = [
    ("curve", ["x"], r"curve\[0\] = 'x': should be a number"),
    ("curve", [None], r"curve\[0\]: is null and should be a number"),
    ("curve", [1e300], r"curve\[0\] = 1e\+300: should be less than or equal to 100"),
    ("curve", {"a": 1}, "curve.*: should be a list"),
    ("curve", [], "curve.*: a complete trial has an accuracy"),
    ("curve", [10**400], r"curve\[0\]"),
    ("network", [], "network.*: should be a mapping"),
    ("network", {**NETWORK, "config": [1]}, r"network\.config = \[1\]: should be a mapping"),
    ("network", {**NETWORK, "flops": "x"}, r"network\.flops = 'x': should be a whole number"),
    ("network", {**NETWORK, "flops": -5}, r"network\.flops = -5: should be greater than"),
    ("network", {**NETWORK, "flops": 10**400}, r"network\.flops"),
    ("network", {**NETWORK, "origin": [1]}, r"network\.origin = \[1\]: should be text"),
    ("network", {**NETWORK, "replicate_of": 0}, r".*replicate_of = 0: is the number of an earlier"),
    (
        "network",
        {**NETWORK, "replicate_of": "x"},
        r".*replicate_of = 'x': should be a whole number",
    ),
    ("result", {"outcome": "stolen"}, r"result\.outcome = 'stolen': should be 'complete'"),
    ("result", {"outcome": "running"}, r"result\.outcome = 'running': a result is of a trial that"),
    ("result", {"outcome": "failed", "error": ["x"]}, r"result\.error = \['x'\]: should be text"),
    ("result", {"outcome": "failed", "seconds": "x"}, r"result\.seconds = 'x': should be a number"),
    ("result", {"outcome": "failed", "seconds": -1.0}, r"result\.seconds = -1\.0: should be"),
    ("result", {"outcome": "failed", "device": [1]}, r"result\.device = \[1\]: should be text"),
    ("result", {"outcome": "failed", "device": "\ud800"}, r"result\.device"),
]
STUDY: list[tuple[str, Any, str]] = [
    ("space", [], "space.*: should be a mapping"),
    ("space", None, "space: is null and should be a mapping"),
    ("space", {"name": [1]}, r"space\.name = \[1\]: should be text"),
    ("space", {"proxy": "x"}, r"space\.proxy = 'x': should be a mapping"),
    ("environment", None, "environment: is null and should be a mapping"),
    ("environment", {"sessions": {"a": 1}}, r"environment\.sessions = .*: should be a list"),
    ("environment", {"sessions": ["x"]}, r"environment\.sessions\[0\] = 'x': should be a mapping"),
    ("environment", {"data": {"num_val_images": 1e308}}, r".*num_val_images = 1e\+308: should be"),
    ("environment", {"data": {"num_val_images": -5}}, r".*num_val_images = -5: should be greater"),
    ("environment", {"sessions": [{"ended_by": {}}]}, r".*sessions\[0\]\.ended_by = .*: should be"),
]


@pytest.mark.parametrize(("key", "value", "message"), TRIAL)
def test_a_value_of_a_trial_that_is_of_another_type(
    run: Path, key: str, value: Any, message: str
) -> None:
    put(run, "trial", key, value)
    for read in (read_run, open_run):
        with pytest.raises(RunError, match=rf"study\.db: trial 0: {message}"):
            read(run)


@pytest.mark.parametrize(("key", "value", "message"), STUDY)
def test_a_value_of_the_run_that_is_of_another_type(
    run: Path, key: str, value: Any, message: str
) -> None:
    put(run, "study", key, value)
    with pytest.raises(RunError, match=rf"study\.db: {message}"):
        read_run(run)
    if key == "environment":
        with pytest.raises(RunError, match=rf"study\.db: {message}"):
            open_run(run)


@pytest.mark.parametrize(
    ("name", "value"), [("num_trials", "x"), ("num_trials", None), ("test_top1", {"0": "x"})]
)
def test_what_is_added_later_has_its_type_too(run: Path, name: str, value: Any) -> None:
    store = open_run(run)
    store.set(name, value)
    store.close()
    with pytest.raises(RunError, match=rf"study\.db: {name}"):
        read_run(run)


@pytest.mark.parametrize("number", ["'../../PWNED'", "null", "7", "-1", "1"])
def test_no_path_is_made_of_a_trial_s_number(run: Path, number: str) -> None:
    sql(run, f"update trials set number = {number} where trial_id = 1")
    for read in (read_run, open_run):
        with pytest.raises(RunError, match=r"study\.db: (trial 0: number = .*: numbers count|can)"):
            read(run)


def test_a_time_that_no_clock_shows(run: Path) -> None:
    sql(run, "update trials set datetime_start = '0001-01-01 00:00:00' where trial_id = 1")
    with pytest.raises(RunError, match=r"trial 0: datetime_start = 0001.*: is no time of this"):
        read_run(run)


def test_a_trial_that_waits_is_none_of_ours(run: Path) -> None:
    sql(run, "update trials set state = 'WAITING' where trial_id = 1")
    with pytest.raises(RunError, match="trial 0: state = 'WAITING': a stored trial runs or has"):
        open_run(run)


def test_a_parameter_of_two_kinds(tmp_path: Path) -> None:
    store = open_run(tmp_path)
    for _ in range(2):
        trial = store.ask()
        trial.suggest_int("depth", 1, 3)
        store.tell(trial.number, Outcome.FAILED)
    store.close()
    other = '{"name": "FloatDistribution", "attributes": '
    other += '{"low": 0.0, "high": 9.0, "log": false, "step": null}}'
    sql(tmp_path, "update trial_params set distribution_json = ? where param_id = 1", (other,))
    with pytest.raises(RunError, match=r"cannot be read as a study .*different distribution kind"):
        open_run(tmp_path)


FOREIGN: list[tuple[str, str]] = [
    ("update study_user_attributes set value_json = '2' where key = 'format'", "format 2, this"),
    ("update studies set study_name = 'mine'", "holds no study named 'vitnas'"),
    ("update alembic_version set version_num = 'v99.0.0.a'", "optuna version"),
]


@pytest.mark.parametrize(("statement", "message"), FOREIGN)
@pytest.mark.parametrize("read", [read_run, open_run])
def test_a_study_of_another_version_or_name(
    run: Path, statement: str, message: str, read: Callable[[Path], object]
) -> None:
    sql(run, statement)
    if read is open_run and "mine" in statement:
        return  # a new study beside it is no harm
    with pytest.raises(RunError, match=message):
        read(run)


def test_what_a_later_version_tells_is_kept(run: Path) -> None:
    told = {"sessions": [{"mood": "good"}], "data": {"name": "x", "licence": "free"}}
    put(run, "study", "environment", told)
    environment = read_run(run).environment
    assert environment.told() == told
    assert environment.last.ended_by is None
