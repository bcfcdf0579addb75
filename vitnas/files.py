"""The one place that writes and deletes files, and that opens files which somebody else made.

Only files that vitnas wrote are replaced or deleted. A link is never followed to what it names:
a file is written beside its place under a name that nobody can guess, and then renamed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from vitnas.errors import RunError, reason_of

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_MORE = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
_PIPE_S = 10.0  # in all
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def write_text(path: str | Path, text: str) -> None:
    """Write beside, then rename: a reader sees the old file or the new one, never half of one."""
    write_bytes(path, encoded(text))


def encoded(text: str) -> bytes:
    """UTF-8; bytes of a file's name that are none are spelled out."""
    return text.encode("utf-8", "backslashreplace")


def write_bytes(path: str | Path, *content: bytes | memoryview) -> None:
    """As `write_text`, for bytes, given as one part or several. Where `path` is a link, the link is
    replaced and not its target.

    Raises:
        OSError: `path` cannot be written; `filename` is `path`.
    """
    path = Path(path)
    beside = path.with_name(f".vitnas.{os.urandom(8).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(beside, _NEW, 0o666), "wb") as file:
            file.writelines(content)
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from None


def append_line(path: Path, text: str) -> None:
    """Add a line to a file of ours, in one piece, so that lines of several processes do not mix.

    What another process left half written stays a line of its own.

    Raises:
        OSError: `path` cannot be written, or is a link.
    """
    descriptor = os.open(path, _MORE, 0o666)
    try:
        size = os.fstat(descriptor).st_size
        is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        line = encoded("\n" * is_cut + text + "\n")
        if os.write(descriptor, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Name `path`, which the user knows, where the system refuses to write in this block.

    Raises:
        RunError: it refuses.
    """
    try:
        yield
    except OSError as error:
        raise RunError(f"{path}: cannot be written: {reason_of(error)}") from None


def check_replaceable(path: Path, is_ours: Callable[[bytes], bool]) -> None:
    """Make sure that a file which a user names to be written is new, empty or one of ours.

    Args:
        path: the file.
        is_ours: tells one of ours by its first 4,096 bytes.

    Raises:
        RunError: something else stands there, or there is no writable folder for it.
    """
    if not exists(path):
        check_writable(path)
        return
    try:
        with open_file(path) as file:
            head = file.read(4096)
    except OSError as error:
        raise RunError(f"{path}: cannot be replaced: {reason_of(error)}") from None
    if head and not is_ours(head):
        raise RunError(f"{path}: is a file that vitnas did not write; give another name")
    check_writable(path.absolute().parent)


def check_writable(path: Path) -> None:
    """Make sure that the folder `path`, or what is not there yet at `path`, can be written.

    Raises:
        RunError: the nearest folder that is there is none, or is not writable; or there can be no
            such name.
    """
    there = next(parent for parent in (path, *path.absolute().parents) if exists(parent))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise RunError(f"{path}: cannot be written to ({there} is not a writable folder)")
    try:
        with contextlib.suppress(FileNotFoundError):
            path.lstat()  # says what is wrong with a name
        tempfile.TemporaryFile(dir=there).close()
    except (OSError, ValueError) as error:
        why = reason_of(error) if isinstance(error, OSError) else str(error)
        raise RunError(f"{path}: cannot be written to ({why})") from None


def own_folder(path: Path) -> Path:
    """A folder inside one of ours, such as `weights/` of a run; made where it is not there.

    Raises:
        RunError: see `check_own`.
    """
    check_own(path)
    path.mkdir(parents=True, exist_ok=True)
    return path


def check_own(path: Path) -> None:
    """Make sure that `path`, inside a folder of ours, can be a folder of ours.

    Raises:
        RunError: a link stands there, which could lead anywhere, or a file.
    """
    if path.is_symlink():
        raise RunError(f"{path}: is a link; vitnas writes to a folder of its own there")
    if path.exists() and not path.is_dir():
        raise RunError(f"{path}: is a file; a folder belongs there")


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Delete the files of these names in `folder`; a folder that is a link is left alone."""
    if not folder.is_symlink():
        for name in names:
            with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                (folder / name).unlink()


def remove_folder(folder: Path, names: Iterable[str]) -> None:
    """Delete the files of these names, then `folder` if nothing of somebody else is left in it."""
    with contextlib.suppress(OSError):
        remove_files(folder, names)
        folder.rmdir()


def open_file(path: str | Path) -> BinaryIO:
    """Open a regular file to read it. A pipe, a socket or a device is refused and not waited for.

    Raises:
        OSError: it cannot be opened, or is no regular file.
    """
    descriptor = os.open(path, _READ)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "is not a regular file", str(path))


def read_bytes(path: str | Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger.
    """
    with open_file(path) as file:
        content = file.read(most + 1)
    return _bounded(path, content, most)


def _bounded(path: str | Path, content: bytes, most: int) -> bytes:
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return content


def read_input(path: str | Path, most: int) -> bytes:
    """As `read_bytes`, also of a pipe (a shell's `<(...)`) or a device, up to its end.

    Raises:
        OSError: as of `read_bytes`; or the end has not come within 10 s.
    """
    try:
        return read_bytes(path, most)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return _bounded(path, b"".join(_pieces(path, most + 1)), most)


def _pieces(path: str | Path, most: int) -> Iterator[bytes]:
    """What comes out of a pipe or a device, up to its end or to `most` bytes."""
    until, descriptor = time.monotonic() + _PIPE_S, os.open(path, _READ)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        while most > 0:
            left = until - time.monotonic()
            if left <= 0 or not poll.poll(1e3 * left):
                reason = f"no end of it within {_PIPE_S:g} s"
                raise TimeoutError(errno.ETIMEDOUT, reason, str(path))
            piece = os.read(descriptor, most)
            if not piece:
                return
            most -= len(piece)
            yield piece
    finally:
        os.close(descriptor)


def exists(path: str | Path) -> bool:
    """Whether there is a file or folder; no, where the system cannot even look (too long, NUL).

    An empty text names nothing, also not the current folder.
    """
    try:
        return path != "" and Path(path).exists()
    except (OSError, ValueError):
        return False


def is_file(path: str | Path) -> bool:
    """Whether there is a file and no folder; otherwise as `exists`."""
    return exists(path) and Path(path).is_file()


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder; otherwise as `exists`."""
    return exists(path) and Path(path).is_dir()
