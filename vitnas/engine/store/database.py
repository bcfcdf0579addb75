"""The file study.db: SQLite is set up so that a killed driver loses nothing and writes are fast.

On a local disk the file is in WAL mode while a driver writes: each commit is one append, does not
wait for the disk, and blocks no reader. A process may be killed at any moment. After a power cut,
commits since the last `flush` may be lost, but the file is never damaged. When the driver ends,
everything is moved into study.db, and the files beside it (`-wal`, `-shm`) are removed. WAL needs
memory that all its users share, so on a network file system the slower rollback journal is used.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vitnas.errors import RunError, printable, reason_of, typed

if TYPE_CHECKING:
    from optuna.storages import RDBStorage

FILE_NAME = "study.db"
_NOT_OURS = (LookupError, AssertionError, RuntimeError, ValueError, TypeError, AttributeError)
_OF_THE_DISK = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO,
    errno.EISDIR, errno.ENOTDIR, errno.EEXIST,
)  # fmt: skip
_NO_ROOM = ("disk I/O error", "database or disk is full")
_PATIENCE_S = 30.0
_ROOM = 1 << 20  # bytes that SQLite's files beside a study always fit into
_SHARED = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p")


class ForeignStudy(RunError):
    """A study that is whole, but not one that this vitnas reads."""


def open_database(path: Path, *, write: bool) -> RDBStorage:
    """Optuna's storage over the study.db of a results folder.

    Args:
        path: the results folder.
        write: whether this is the run's one writer; a reader changes nothing, not even the mode,
            and moves no log of a killed driver into the file.

    Raises:
        RunError: another version of Optuna made the file.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    file = (path / FILE_NAME).resolve()
    try:
        return optuna.storages.RDBStorage(
            f"sqlite:///{FILE_NAME}",  # Optuna would fill in braces of a path; `creator` opens it
            engine_kwargs={"creator": partial(_connect, file, write)},
            skip_table_creation=not write,
        )
    except RuntimeError as error:
        raise ForeignStudy(f"{path / FILE_NAME}: {printable(str(error))}") from None


def _connect(file: Path, write: bool) -> sqlite3.Connection:
    address = f"{file.as_uri()}?mode={'rw' if write else 'ro'}{'c' * write}"
    connection = sqlite3.connect(address, timeout=_PATIENCE_S, uri=True, check_same_thread=False)
    if write and not is_shared(file):
        # While another process keeps reading, the mode cannot change; the slower one works, too.
        with contextlib.suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def flush(storage: RDBStorage) -> None:
    """Bring every commit into study.db itself and onto the disk; nothing outside WAL mode."""
    with contextlib.closing(storage.engine.raw_connection()) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def close_database(storage: RDBStorage) -> None:
    """Let go of the file."""
    storage.remove_session()
    storage.engine.dispose()


def make_plain(path: Path) -> None:
    """Bring everything into study.db and end WAL mode, so that the file can be copied alone.

    While another process reads the file, WAL mode and the file `-wal` stay; the same happens on a
    full disk. The study is complete in both cases.
    """
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(path / FILE_NAME, timeout=0.2)) as connection,
    ):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()


def is_shared(path: Path, mounts: Path = Path("/proc/mounts")) -> bool:
    """Whether `path` lies on a network file system; no where the system does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return False
    found = (0, "")
    for line in lines:
        _, where, kind, *_ = [*line.split(), "", "", ""]
        place = Path(where.replace("\\040", " "))
        if place == path or place in path.parents:
            # of two at one place, the later covers the earlier: nfs an automounter's autofs
            found = max((len(place.parts), kind), found, key=lambda pair: pair[0])
    return found[1].removeprefix("fuse.").startswith(_SHARED)


@contextlib.contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turn what a full disk or a damaged database raises in the middle of a run into one line.

    Raises:
        RunError: the study, or another file of the run, cannot be written.
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError, sqlite3.Error) as error:
        raise RunError(f"{path / FILE_NAME}: cannot be written: {_reason(error)}") from error
    except OSError as error:
        if error.errno not in _OF_THE_DISK:
            raise
        where = error.filename or path
        raise RunError(f"{where}: cannot be written: {reason_of(error)}") from error


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what a damaged database raises into one line.

    A full disk is no damage, although SQLite calls it an I/O error where it needs room to read.
    """
    from optuna.exceptions import OptunaError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, OptunaError, sqlite3.Error, *_NOT_OURS) as error:
        reason = _reason(error)
        if reason in _NO_ROOM and shutil.disk_usage(path).free < _ROOM:
            raise RunError(f"{path / FILE_NAME}: {reason}: its disk is full") from error
        raise RunError(
            f"{path / FILE_NAME}: cannot be read as a study ({reason}); "
            f"vitnas salvage {typed(path)} saves what can be read{told_beside(path)}"
        ) from error


def told_beside(path: Path) -> str:
    """What a damaged study leaves to its reader; empty where no report was written."""
    if not (path / "trials.csv").is_file():
        return ""
    return "; trials.csv and configs/ beside it hold what was reported"


def _reason(error: BaseException) -> str:
    """The original error in one line: Optuna wraps the exceptions that SQLAlchemy wraps."""
    while error.__cause__ is not None:
        error = error.__cause__
    name, lines = type(error).__name__, str(error).splitlines()
    if isinstance(error, sqlite3.Error) and lines:
        return lines[0]
    return ": ".join([name, *lines[:1]])
