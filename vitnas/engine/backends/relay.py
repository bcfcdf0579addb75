"""Lines from a process that reads images to the one that shows them, through a file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from vitnas.data.telling import Teller


class Relay:
    """Passes on what another process of this machine tells; use it as a context.

    Args:
        teller: who is told here.

    Attributes:
        sender: who is told there; it can be pickled.
    """

    def __init__(self, teller: Teller) -> None:
        self._teller, self._read = teller, 0
        self._folder = tempfile.TemporaryDirectory(prefix="vitnas-")
        self._path = Path(self._folder.name) / "lines"
        self._path.touch()
        path = str(self._path)
        self.sender = Teller(_Sender(path, "notice"), _Sender(path, "doing"))

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *exception: object) -> None:
        self._folder.cleanup()

    def pass_on(self) -> None:
        """Tell here what was told there since the last call; a line that is half written waits."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        for kind, line in map(json.loads, whole.splitlines()):
            (self._teller.notice if kind == "notice" else self._teller.doing)(line)


class _Sender:
    """Appends lines of a kind to a file."""

    def __init__(self, path: str, kind: str) -> None:
        self._path, self._kind = path, kind

    def __call__(self, line: str) -> None:
        with Path(self._path).open("a", encoding="utf-8") as file:
            file.write(json.dumps([self._kind, line]) + "\n")
