"""A run's folder: what may become one, and that one driver at a time writes to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vitnas.engine.store.database import FILE_NAME
from vitnas.errors import RunError, nearest_name, reason_of
from vitnas.files import check_own, check_writable, exists

_LOCK = ".lock"
TUNE_FOLDER = "tune"
"""Of a run: what was tuned before its first trial."""
DRAFT = ".study"
"""Of a run: where its study is made; it is moved to its place once it is whole."""
_INSIDE = ("configs", "weights", "tensorboard", ".tune", TUNE_FOLDER, DRAFT)
_A_GLANCE_S = 1.0  # a process that only checks the lock has released it by then


def check_folder(path: Path, own: str = FILE_NAME) -> None:
    """Refuse a folder that could not be written to or holds something else, before anything is.

    Args:
        path: the folder.
        own: the file by which a folder of ours is known.

    Raises:
        RunError: `path` is a file, cannot be made or written, or holds files of something else; or
            a folder of the run is a link or a file.
    """
    try:
        if path.exists() and not path.is_dir():
            raise RunError(f"{path}: is a file; --out names a folder")
    except OSError as error:
        raise RunError(f"{path}: cannot be made ({reason_of(error)})") from None
    check_writable(path)
    for name in _INSIDE:
        check_own(path / name)
    if not path.is_dir() or (path / own).exists():
        return
    names = {item.name for item in path.iterdir()} - {TUNE_FOLDER}
    strange = sorted(name for name in names if not name.startswith("."))
    if strange:
        raise RunError(
            f"{path}: holds '{strange[0]}' and no {own}, so it is of something else; give a new "
            "or an empty folder"
        )


def check_study(path: Path) -> None:
    """Make sure that a folder is a run.

    Raises:
        RunError: it is not; says what is there instead, and the nearest run.
    """
    if (path / FILE_NAME).is_file():
        return
    if (path / DRAFT).is_dir():
        raise RunError(
            f"{path}: the run has no trials yet: its {FILE_NAME} was not made to its end; the "
            "search's own command begins it anew"
        )
    if (path / TUNE_FOLDER / _LOCK).is_file():
        tunes = "its search tunes the recipe first"
        stopped = "its search was stopped while it tuned the recipe; the same command goes on"
        how = tunes if is_locked(path / TUNE_FOLDER) else stopped
        raise RunError(f"{path}: the run has no trials yet: {how}")
    if path.is_dir():
        problem, near = f"no {FILE_NAME} in it, so it is not a run of vitnas", path
    elif exists(path):
        problem, near = f"is a file; a run is a folder with a {FILE_NAME}", path.parent
    else:
        problem, near = f"no such folder, so no {FILE_NAME} in it", path.parent
    files = (*near.glob(FILE_NAME), *sorted(near.glob(f"*/{FILE_NAME}")))
    runs = {file.parent.name: file.parent for file in files}
    name = next(iter(runs), None) if exists(path) else nearest_name(path.name, runs)
    raise RunError(f"{path}: {problem}" + (f" (nearest: {runs[name]})" if name else ""))


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: cannot be made ({reason_of(error)})") from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One driver a run.

    Raises:
        RunError: another driver has the lock.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path / _LOCK)
    try:
        lock.acquire(timeout=_A_GLANCE_S, poll_interval=0.1)
    except Timeout:
        raise in_use(path) from None
    except OSError as error:
        raise RunError(f"{path}: cannot be written to ({reason_of(error)})") from None
    try:
        yield
    finally:
        lock.release()


def in_use(path: Path) -> RunError:
    return RunError(f"{path}: another search is writing to this run")


def is_locked(path: Path) -> bool:
    """Whether a driver on this machine is writing to the run; no where the folder is read-only."""
    from filelock import FileLock, Timeout

    if not (path / _LOCK).exists():
        return False
    try:
        with FileLock(path / _LOCK).acquire(timeout=0):
            return False
    except Timeout:
        return True
    except OSError:
        return False
