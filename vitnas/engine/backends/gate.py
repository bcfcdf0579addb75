"""One measurement at a time on a device, and no epoch of a measuring search beside it.

Workers share only two locks for each device, files in the temporary folder. The kernel frees them
when a process dies. A worker that measures first takes the gate, so that no new epoch begins; apart
from other measurements, nobody holds the gate for long. Then it waits for the running epochs. So a
measurement waits for one epoch at most, and an epoch waits only for earlier measurements.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, ReadWriteLock


class DeviceGate:
    """The gate of one device of this machine, for one user's processes.

    Args:
        device: a name that no other device of the machine has.
        folder: where the files are; the system's temporary folder unless a test says otherwise.
    """

    def __init__(self, device: str, folder: Path | None = None) -> None:
        place = folder or Path(tempfile.gettempdir())
        name = "".join(letter if letter.isalnum() else "-" for letter in device)
        self._gate = place / f"vitnas-{os.getuid()}-{name}.gate"
        self._inside = place / f"vitnas-{os.getuid()}-{name}.inside"

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Inside, others may train, too, and nobody measures."""
        inside = ReadWriteLock(self._inside, is_singleton=False)
        with FileLock(self._gate):
            inside.acquire_read()
        try:
            yield
        finally:
            inside.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside, nobody else trains or measures."""
        inside = ReadWriteLock(self._inside, is_singleton=False)
        with FileLock(self._gate), inside.write_lock():
            yield
