"""TensorBoard's files, written with its own event writer: torch's would bring torch along."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitnas.errors import ConfigError
from vitnas.files import own_folder, remove_files


def check_package() -> None:
    """Make sure that the files can be written, before anything is.

    Raises:
        ConfigError: the package tensorboard is not installed.
    """
    try:
        from tensorboard.summary.writer import event_file_writer
    except ImportError:
        rule = "needs the package tensorboard: pip install 'vitnas[tensorboard]'"
        raise ConfigError(rule, address="--tensorboard") from None
    assert event_file_writer


class Events:
    """The curves of one folder, which is made with the first value.

    Args:
        folder: inside one of ours.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None

    def forget(self) -> None:
        """Delete what was written here before."""
        written = [file.name for file in self.folder.glob("events.out.tfevents.*")]
        remove_files(self.folder, written)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add values by tag; a viewer sees them at once."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        if self._writer is None:
            self._writer = EventFileWriter(str(own_folder(self.folder)))
        tags = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        event = Event(wall_time=time.time(), step=step, summary=Summary(value=tags))
        self._writer.add_event(event)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
