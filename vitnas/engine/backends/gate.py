"""One measurement at a time on a device, while no epoch of a measuring search runs there.

Workers share only two locks for each device, files in the temporary folder. The kernel frees them
when a process dies. To measure, a worker first takes the gate, so that no new epoch begins. Only
measurements hold the gate for long. Then the worker waits for the running epochs. So a measurement
waits for at most one epoch, and an epoch waits only for earlier measurements.
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
        """A context in which other workers may train, and none measures."""
        inside = ReadWriteLock(self._inside, is_singleton=False)
        with FileLock(self._gate):
            inside.acquire_read()
        try:
            yield
        finally:
            inside.release()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A context in which no other worker trains or measures."""
        inside = ReadWriteLock(self._inside, is_singleton=False)
        with FileLock(self._gate), inside.write_lock():
            yield
