"""Where lines are printed: streams that may be closed, full, or unable to spell a character."""

from __future__ import annotations

import errno
import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from vitnas.errors import LostError, VitnasError, in_one_line, reason_of, spelled_out

_OF_A_STREAM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
_LONGEST = 1_000  # characters of a line
_TURN_S = 5.0
_CLOSED_PIPE = 1  # as Python itself and typer end


def settle_streams() -> None:
    """Make sure that there are streams, and that they spell out what their encoding lacks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def say(text: str, end: str = "\n", flush: bool = False, file: TextIO | None = None) -> None:
    """Print a text that may hold names, errors and paths of other people."""
    print(spelled_out(text), end=end, flush=flush, file=file)


def complain(line: str) -> None:
    """Print a line on stderr; a very long one is cut in its middle."""
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]}...{line[-_LONGEST // 2 :]}"
    try:
        print(f"vitnas: {in_one_line(line)}", file=sys.stderr, flush=True)
    except OSError:
        _abandon(sys.stderr)


@contextmanager
def in_turn(rank: int) -> Iterator[None]:
    """Inside, an error of one of several processes that all may have it: the first one tells it.

    torchrun ends the others then, so they wait for that. What happened to one alone has its number.

    Args:
        rank: the number of this process; 0 = the first one, or the only one.
    """
    try:
        yield
    except VitnasError as error:
        if not rank:
            raise
        if not isinstance(error, LostError):
            time.sleep(_TURN_S)
        raise VitnasError(f"process {rank}: {error}") from None


def flush(code: int) -> int:
    """Write what is left to print; the exit code: `code`, or another one if that fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        return told(error)
    return code


def told(error: OSError) -> int:
    """Say in one line what the system refused; the exit code.

    A closed pipe, as after `| head`, is no error: nothing is printed.
    """
    reason = reason_of(error)
    if isinstance(error, BrokenPipeError):
        _abandon(sys.stdout)
        return _CLOSED_PIPE
    if error.filename is not None:
        complain(f"{os.fsdecode(error.filename)}: {reason}")
    elif error.errno in _OF_A_STREAM:
        _abandon(sys.stdout)
        complain(f"what is printed cannot be written: {reason}")
    else:
        complain(reason)
    return 2


def _abandon(stream: TextIO) -> None:
    """Discard what is left in a stream's buffer: Python would write it again at its exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return
