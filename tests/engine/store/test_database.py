"""The file itself: whole when copied, untouched by readers, plain when the driver is gone."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy.exc import SQLAlchemyError

from tests.engine.conftest import make_space, train
from vitnas.engine.decide.controller import Controller
from vitnas.engine.store import study
from vitnas.engine.store.database import is_shared, open_database, readable, writable
from vitnas.engine.store.study import RunStore, read_run, read_study
from vitnas.errors import RunError

Make = Callable[..., Controller]


def mode_of(file: Path) -> str:
    connection = sqlite3.connect(file)
    try:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    finally:
        connection.close()


def test_a_driver_leaves_one_plain_file(controller_of: Make, tmp_path: Path) -> None:
    controller = controller_of(num_trials=2)
    assert mode_of(tmp_path / "study.db") == "wal"
    while (job := controller.next()) is not None:
        train(controller, job)
    assert len(read_run(tmp_path).complete) == 2
    controller.store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]
    assert mode_of(tmp_path / "study.db") == "delete"


def test_a_copy_of_the_file_alone_holds_the_ended_trials(
    controller_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever copies study.db of a running search does not think of what lies beside it."""
    monkeypatch.setattr(study, "_FLUSH_S", 0.0)
    controller = controller_of(num_trials=3)
    while (job := controller.next()) is not None:
        train(controller, job)
    (tmp_path / "copy").mkdir()
    shutil.copyfile(tmp_path / "study.db", tmp_path / "copy" / "study.db")
    assert len(read_run(tmp_path / "copy").complete) == 3


def test_readers_do_not_finish_what_a_writer_has_begun(tmp_path: Path) -> None:
    """Optuna stamps a file that has tables and no version yet; from two sides that is an error."""
    from optuna.storages._rdb import models
    from sqlalchemy import create_engine

    engine = create_engine(f"sqlite:///{tmp_path}/study.db")
    models.BaseModel.metadata.create_all(engine)
    engine.dispose()
    before = (tmp_path / "study.db").read_bytes()
    with pytest.raises(RunError, match="cannot be read as a study"):
        read_study(tmp_path)
    assert (tmp_path / "study.db").read_bytes() == before
    RunStore(tmp_path, {"space": make_space().to_tree(), "seed": 0}).close()


@pytest.mark.parametrize("patience", [30.0, 0.1])
def test_a_writer_starts_beside_a_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """It waits for the reader, or goes on without WAL mode."""
    monkeypatch.setattr("vitnas.engine.store.database._PATIENCE_S", patience)
    fixed = {"space": make_space().to_tree(), "seed": 0}
    RunStore(tmp_path, fixed).close()
    reader = sqlite3.connect(tmp_path / "study.db", check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM studies").fetchall()
    leaves = threading.Timer(0.5, reader.close)
    leaves.start()
    store = RunStore(tmp_path, fixed)
    leaves.join()
    store.set("num_trials", 7)
    assert mode_of(tmp_path / "study.db") == ("wal" if patience > 1 else "delete")
    store.close()
    assert read_run(tmp_path).num_trials == 7


def test_network_file_systems_are_told_from_disks(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/sda / ext4 rw 0 0\n"
        "host:/x /home nfs4 rw 0 0\n"
        "/dev/sdb /home/me/local xfs rw 0 0\n"
        "sshfs /with\\040space fuse.cephfs rw 0 0\n"
        "systemd-1 /data autofs rw 0 0\n"
        "host:/y /data nfs4 rw 0 0\n"
        "broken\n"
    )
    answers = {
        "/results/run/study.db": False,
        "/home/me/run/study.db": True,
        "/home/me/local/run/study.db": False,
        "/homes/run/study.db": False,
        "/with space/study.db": True,
        "/data/run/study.db": True,
    }
    assert {path: is_shared(Path(path), mounts) for path in answers} == answers
    assert not is_shared(Path("/home"), tmp_path / "no such file")


def test_the_slower_journal_serves_as_well(
    controller_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vitnas.engine.store.database.is_shared", lambda file: True)
    controller = controller_of(num_trials=2)
    assert mode_of(tmp_path / "study.db") == "delete"
    while (job := controller.next()) is not None:
        train(controller, job)
    controller.store.close()
    assert len(read_run(tmp_path).complete) == 2


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    message = "run: cannot be written: no space left on device"
    with pytest.raises(RunError, match=message), writable(tmp_path / "run"):
        raise full
    with pytest.raises(TimeoutError), writable(tmp_path):
        raise TimeoutError


def test_a_full_disk_is_called_so_however_deep_it_is_wrapped(tmp_path: Path) -> None:
    """Optuna wraps what SQLAlchemy wraps, and says that the data may be invalid."""
    from optuna.exceptions import StorageInternalError

    error = StorageInternalError("typically due to invalid data")
    error.__cause__ = SQLAlchemyError("(sqlite3.OperationalError) ...")
    error.__cause__.__cause__ = sqlite3.OperationalError("database or disk is full")
    message = r"study\.db: cannot be written: database or disk is full$"
    with pytest.raises(RunError, match=message), writable(tmp_path):
        raise error


def test_a_study_on_a_full_disk_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    with pytest.raises(RunError, match="vitnas salvage"), readable(tmp_path):
        raise error
    full = SimpleNamespace(free=4096)
    monkeypatch.setattr("vitnas.engine.store.database.shutil.disk_usage", lambda path: full)
    message = r"study\.db: disk I/O error: its disk is full$"
    with pytest.raises(RunError, match=message), readable(tmp_path):
        raise error
    with pytest.raises(RunError, match=r"malformed.*vitnas salvage"), readable(tmp_path):
        raise sqlite3.DatabaseError("database disk image is malformed")


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    RunStore(tmp_path, {"space": make_space().to_tree(), "seed": 0}).close()
    storage = open_database(tmp_path, write=False)
    study_id = storage.get_study_id_from_name(study.STUDY_NAME)
    with (
        pytest.raises(RunError, match=r"study\.db: cannot be written: .*readonly"),
        writable(tmp_path),
    ):
        storage.set_study_user_attr(study_id, "a", 1)
    storage.engine.dispose()
