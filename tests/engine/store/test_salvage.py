"""What can be saved of a damaged study.db is saved, under its own number."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine.conftest import open_controller, start, train, train_some
from vitnas.engine.decide.controller import Controller
from vitnas.engine.store.salvage import salvage
from vitnas.engine.store.study import read_run
from vitnas.errors import RunError
from vitnas.records import Outcome
from vitnas.run import Run

Make = Callable[..., Controller]
PAGE = 4096


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of 40 trials and one under way."""
    folder = tmp_path_factory.mktemp("original")
    controller = open_controller(folder, num_trials=41)
    controller.store.set("num_trials", 41)
    train_some(controller, 40)
    job = start(controller)
    controller.report(job.number, 1, 50.0)
    controller.store.close()
    return folder


@pytest.fixture
def whole(original: Path, tmp_path: Path) -> Run:
    """A copy of the run, to be damaged."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return read_run(tmp_path)


def overwrite(file: Path, page: int) -> None:
    content = bytearray(file.read_bytes())
    content[page * PAGE : (page + 1) * PAGE] = b"\xa5" * PAGE
    file.write_bytes(content)


@pytest.mark.slow
def test_any_page_may_be_damaged(whole: Run, tmp_path: Path) -> None:
    """Whichever page is overwritten: what is saved is what was there, and the run goes on."""
    file = tmp_path / "study.db"
    content = file.read_bytes()
    before = {trial.number: trial for trial in whole.trials}
    saved_of_page = {}
    for page in (1, *range(2, len(content) // PAGE, 17)):
        file.write_bytes(content)
        overwrite(file, page)
        try:
            done = salvage(tmp_path)
        except RunError:  # nothing can be read: a table's root page
            saved_of_page[page] = 0
            continue
        saved_of_page[page] = done.saved
        run = read_run(tmp_path)
        assert len(run.trials) == len(whole.trials)
        assert done.saved + done.lost == len(run.trials)
        for trial in run.trials:
            if trial.key:
                old = before[trial.number]
                assert (trial.key, trial.flops, trial.seed) == (old.key, old.flops, old.seed)
                if trial.outcome is not Outcome.RUNNING:
                    assert (trial.outcome, trial.curve) == (old.outcome, old.curve)
            else:
                assert trial.outcome is Outcome.REFUSED
        damaged = done.damaged
        assert damaged.is_file()
        damaged.unlink()
    most = max(saved_of_page.values())
    assert most == len(whole.trials)
    assert sum(saved > most // 2 for saved in saved_of_page.values()) > len(saved_of_page) // 2


@pytest.mark.parametrize("table", ["study_directions", "trial_heartbeats"])
def test_a_damaged_name_of_another_table_hides_nothing(
    whole: Run, tmp_path: Path, table: str
) -> None:
    """SQLite quotes the name in its error, and Python cannot read it."""
    file = tmp_path / "study.db"
    content, name = file.read_bytes(), b"table" + table.encode()
    assert content.count(name) == 1
    file.write_bytes(content.replace(name, b"table\xe5" + name[6:]))
    done = salvage(tmp_path)
    assert (done.saved, done.lost) == (len(whole.trials), 0)
    assert read_run(tmp_path).trials == whole.trials


@pytest.mark.slow
def test_a_salvaged_run_goes_on(whole: Run, controller_of: Make, tmp_path: Path) -> None:
    overwrite(tmp_path / "study.db", 1)
    with pytest.raises(RunError, match=r"; vitnas salvage .* saves what can be read"):
        read_run(tmp_path)
    done = salvage(tmp_path)
    assert (done.saved, done.lost, done.unfinished) == (len(whole.trials), 0, 1)
    assert read_run(tmp_path).num_trials == 41
    controller = controller_of(num_trials=42)
    while (job := controller.next()) is not None:
        train(controller, job)
    controller.store.close()
    run = read_run(tmp_path)
    assert len(run.complete) == 42
    assert len({trial.key for trial in run.complete}) == 42
    assert [t.params for t in run.trials[:10]] == [t.params for t in whole.trials[:10]]


@pytest.mark.slow
def test_a_file_that_was_cut_off(whole: Run, tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 9 // 10])
    with pytest.raises(RunError, match="cannot be read as a study"):
        read_run(tmp_path)
    done = salvage(tmp_path)
    assert done.saved > len(whole.trials) // 2
    assert done.damaged.read_bytes() == content[: len(content) * 9 // 10]


@pytest.mark.parametrize("text", ["[1]", "[" * 100_000, "{}"], ids=str.__len__)
def test_files_beside_a_study_may_be_damaged_too(whole: Run, tmp_path: Path, text: str) -> None:
    edit(tmp_path, "update study_user_attributes set value_json = '[' where key = 'seed'")
    (tmp_path / "environment.json").write_text(text)
    with pytest.raises(RunError, match=r"study\.db: "):
        salvage(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello world" * 500, b"SQLite format 3\x00" + bytes(99)])
def test_what_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "study.db").write_bytes(content)
    with pytest.raises(RunError, match=r"no trial in it can be read$"):
        salvage(tmp_path)
    assert (tmp_path / "study.db").read_bytes() == content
    assert {path.name for path in tmp_path.iterdir()} <= {"study.db", ".lock"}
    (tmp_path / "trials.csv").touch()
    with pytest.raises(RunError, match=r"no trial in it can be read; trials\.csv and configs/"):
        salvage(tmp_path)


def test_a_run_in_use_is_not_touched(whole: Run, tmp_path: Path) -> None:
    from vitnas.engine.store.folder import locked

    with locked(tmp_path), pytest.raises(RunError, match="another search is writing"):
        salvage(tmp_path)


def test_a_sound_run_is_left_alone(whole: Run, tmp_path: Path) -> None:
    content = (tmp_path / "study.db").read_bytes()
    with pytest.raises(RunError, match=r"study\.db: is not damaged; nothing was changed"):
        salvage(tmp_path)
    assert (tmp_path / "study.db").read_bytes() == content


def test_the_damaged_file_is_kept_as_it_was(controller_of: Make, tmp_path: Path) -> None:
    """What a killed driver had not yet moved from the log to the file stays where it is."""
    controller = controller_of(num_trials=12)
    train_some(controller, 12)
    log = tmp_path / "study.db-wal"
    assert log.stat().st_size
    before = {path.name: path.read_bytes() for path in (tmp_path / "study.db", log)}
    controller.store.close()
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    overwrite(tmp_path / "study.db", 0)
    broken = (tmp_path / "study.db").read_bytes()
    with contextlib.suppress(RunError):
        salvage(tmp_path)
    kept = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert broken in kept
    assert before["study.db-wal"] in kept


def edit(run: Path, statement: str) -> bytes:
    """The content of study.db once `statement` has been executed."""
    with contextlib.closing(sqlite3.connect(run / "study.db")) as connection:
        connection.execute(statement)
        connection.commit()
    return (run / "study.db").read_bytes()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("update study_user_attributes set value_json = '2' where key = 'format'", "format 2"),
        ("update studies set study_name = 'mine'", "holds no study named"),
        ("update alembic_version set version_num = 'v99.0.0.a'", "optuna version"),
    ],
)
def test_a_sound_study_of_another_version_is_left_alone(
    whole: Run, tmp_path: Path, statement: str, message: str
) -> None:
    content = edit(tmp_path, statement)
    with pytest.raises(RunError, match=message):
        salvage(tmp_path)
    assert (tmp_path / "study.db").read_bytes() == content
    assert not list(tmp_path.glob("*.damaged*"))


@pytest.mark.slow  # waits as long as SQLite does
def test_a_locked_study_is_no_damaged_one(whole: Run, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "study.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RunError, match=r"study\.db: is locked by another program"):
            salvage(tmp_path)
    assert not list(tmp_path.glob("*.damaged*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "lost", "again"),
    [
        ("value_json = '[]' where key = 'result' and trial_id = 2", 0, 2),
        ("""value_json = '{"outcome": "stolen"}' where key = 'result' and trial_id = 2""", 0, 2),
        ("value_json = '[]' where key = 'network' and trial_id = 2", 1, 1),
        ("trial_id = 1000000000 where key = 'curve' and trial_id = 2", 0, 2),
    ],
)
def test_a_value_of_another_type_costs_its_trial_alone(
    whole: Run, tmp_path: Path, statement: str, lost: int, again: int
) -> None:
    edit(tmp_path, f"update trial_user_attributes set {statement}")
    done = salvage(tmp_path)
    assert (done.lost, done.unfinished) == (lost, again)
    assert done.saved + done.lost == len(read_run(tmp_path).trials) == len(whole.trials)


@pytest.mark.slow
def test_a_parameter_that_nobody_knows_is_left_out(whole: Run, tmp_path: Path) -> None:
    unknown = '{"name": "os.system", "attributes": {}}'
    edit(tmp_path, f"update trial_params set distribution_json = '{unknown}' where param_id = 2")
    assert salvage(tmp_path).lost == 0
    assert len(read_run(tmp_path).trials) == len(whole.trials)


def test_a_full_disk_is_one_line(
    whole: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overwrite(tmp_path / "study.db", 1)
    content = (tmp_path / "study.db").read_bytes()

    def full(*names: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vitnas.engine.store.salvage.shutil.copyfile", full)
    with pytest.raises(RunError, match="cannot be written: no space left"):
        salvage(tmp_path)
    assert (tmp_path / "study.db").read_bytes() == content
