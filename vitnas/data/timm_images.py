"""Images of timm's that have numbers: what is known of them before one is read, and each by its
number."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from tarfile import TarInfo
from threading import Lock
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from vitnas.data.decode import BrokenImage, conversions, read_rgb, read_whole
from vitnas.data.place import fingerprint_of


def known_labels(data: Any) -> Tensor | None:
    """(n,) int64, the class of each image of a split that `open_timm` has opened; None where these
    are not known before the images are read."""
    try:
        labels = torch.as_tensor(getattr(data, "targets", None))
    except (RuntimeError, TypeError, ValueError):
        return None
    are_numbers = not labels.is_floating_point() and labels.dtype != torch.bool
    if not are_numbers or not len(data) or labels.shape != (len(data),) or labels.min() < 0:
        return None
    return labels.long()


def list_of(data: Any, classes: Sequence[str], labels: Tensor) -> str:
    """Sixteen hex digits of what is known of a split before it is read: the classes' names, the
    class of each image and, of a folder or tar file, the names and sizes of the images' files.

    Args:
        data: the split as `open_timm` has opened it.
        classes: the names.
        labels: those of `known_labels`.
    """
    files = data.files() if isinstance(data, Read) else []
    told = os.fsencode("".join(f"\0{name}\0{size}" for name, size in files))
    digest: str = fingerprint_of(classes, [labels.numpy().tobytes(), told], len(labels))["digest"]
    return digest


class Read:
    """A data set of timm's with a number for each image, read by ourselves: timm replaces an image
    that it cannot read by the next one.

    Several threads may read at once: one takes bytes from an archive while the others decode.

    Attributes:
        numbers: of the classes, by name; empty where the data set has no names.
    """

    def __init__(self, reader: Any) -> None:
        self._reader, self._alone = reader, Lock()
        weakref.finalize(self, _close, getattr(reader, "tar_state", None))
        self.numbers = numbers_of(reader)
        self._chosen = _listed(reader)

    @property
    def is_listed(self) -> bool:
        """Whether the images are files, of which name, size and class are known."""
        return self._chosen is not None

    @property
    def classes(self) -> tuple[str, ...]:
        """The names in the order of their numbers."""
        return in_order(self.numbers)

    def choose(self, classes: Sequence[str]) -> None:
        """Only the images of these classes, which get the numbers of their order; `is_listed`."""
        before, listed = self.numbers, self._chosen or []
        self.numbers = {name: number for number, name in enumerate(classes)}
        ours = {number: self.numbers.get(name, -1) for name, number in before.items()}
        self._chosen = [(n, ours[label]) for n, label in listed if ours[label] >= 0]

    @property
    def targets(self) -> list[Any] | None:
        """What is told of each image's class before one is read: the listed classes, or the column
        of `hfds/`. None where nothing is."""
        if self._chosen is not None:
            return [label for _, label in self._chosen]
        column, table = getattr(self._reader, "label_key", None), self._table
        return list(table[column][:]) if column in getattr(table, "column_names", ()) else None

    def files(self) -> list[tuple[str, int]]:
        """Name and size in bytes of each image's file; empty where they are not listed."""
        reader = self._reader
        return [(reader.filename(n), _size(reader.samples[n][0])) for n, _ in self._chosen or ()]

    @property
    def fingerprint(self) -> str | None:
        """That of a data set of `hfds/`."""
        found = getattr(self._table, "_fingerprint", None)
        return None if found is None else str(found)

    @property
    def _table(self) -> Any:
        """The data set of `hfds/`, which has columns."""
        return getattr(self._reader, "dataset", None)

    def __len__(self) -> int:
        return len(self._reader if self._chosen is None else self._chosen)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        path, content, label = self._file(index)
        return read_rgb(path, content), label

    def kinds(self, index: int) -> tuple[str, ...]:
        """What an image is that is converted; see `vitnas.data.decode.conversions`."""
        try:
            path, content, _ = self._file(index)
        except BrokenImage:
            return ()
        return conversions(path, content)

    def _file(self, index: int) -> tuple[Path, BytesIO, int]:
        """An image's file, all that is in it, and its class."""
        number, ours = (index, None) if self._chosen is None else self._chosen[index]
        with self._alone:
            file, label = self._reader[number]
            path = Path(str(self._reader.filename(number)))
            with file:
                content = read_whole(path, file)
        return path, BytesIO(content), label if ours is None else ours


def numbers_of(reader: Any) -> Mapping[str, int]:
    """Those of the classes, by name; empty where timm's reader has no names."""
    found: Mapping[str, int] = getattr(reader, "class_to_idx", None) or {}
    return found or getattr(reader, "class_name_to_idx", {})


def in_order(numbers: Mapping[str, int]) -> tuple[str, ...]:
    """The names in the order of their numbers."""
    return tuple(sorted(numbers, key=lambda name: numbers[name]))


def _listed(reader: Any) -> list[tuple[int, int]] | None:
    """The number and class of each image in a reader of files; None of another reader."""
    if not hasattr(reader, "samples"):
        return None
    labels = getattr(reader, "targets", None)  # of an archive; in a folder beside the paths
    labels = [label for _, label in reader.samples] if labels is None else labels.tolist()
    return list(enumerate(labels))


def _size(file: Any) -> int:
    """Bytes of a file, by its path or as a member of an archive; -1 where the system does not
    say."""
    if isinstance(file, TarInfo):
        return file.size
    try:
        return Path(file).stat().st_size
    except OSError:
        return -1


def _close(tar: Any) -> None:
    """Close the archive that timm's reader keeps open."""
    if tar is not None and tar.tf is not None:
        tar.tf.close()
