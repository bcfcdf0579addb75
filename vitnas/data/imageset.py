"""A set of decoded images on disk: a folder for one list of files, size and way of resizing.

A set is named by a hash of all that its pixels depend on, so that other files, or changed ones, are
another set.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import PIL
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict

from vitnas.files import remove_folder, write_text

FACTS_FILE = "set.json"
_FORMAT = 2  # of the files, and of what pixels are read from an image
_METHOD = "bicubic, covering, cut to the centre"
_MOST_PER_SHARD = 4096
_SHARD_BYTES = 1 << 26
_SHARDS = 128  # that a set is cut into, if they do not become too small
_LEAST_PER_SHARD = 64


class ImageFile(NamedTuple):
    """A file of an image folder; plain values, for there may be millions.

    Attributes:
        path: the file, with the folder in front.
        number: of its class.
        size: bytes; -1 where the system does not say.
        time: of the last change, in nanoseconds.
    """

    path: str
    number: int
    size: int
    time: int


class SetFacts(BaseModel):
    """What stands in a set's folder for people; its name alone says what the pixels are.

    Attributes:
        root: the folder with the image files.
        image_hw: (H, W) in pixels.
        number: of images; 0 while it is not known, since they can only be read from their beginning
            to their end and the end has not come yet.
        channels: of an image.
        per_shard: images of a shard where this does not follow from `number`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    root: str
    image_hw: tuple[int, int]
    number: int
    channels: int = 3
    per_shard: int | None = None


@dataclass(frozen=True)
class ImageSet:
    """A set of decoded images, whether it is there or not.

    Attributes:
        folder: where it is.
        facts: what it is.
    """

    folder: Path
    facts: SetFacts

    @property
    def per_shard(self) -> int:
        """Images of a shard; the last one may have fewer."""
        if self.facts.per_shard is not None:
            return self.facts.per_shard
        most = min(_MOST_PER_SHARD, max(1, _SHARD_BYTES // self.bytes_of_image))
        return min(most, max(_LEAST_PER_SHARD, -(-self.facts.number // _SHARDS)))

    @property
    def num_shards(self) -> int:
        return -(-self.facts.number // self.per_shard)

    @property
    def bytes_of_image(self) -> int:
        return self.facts.channels * self.facts.image_hw[0] * self.facts.image_hw[1]

    def place(self, shard: int) -> Path:
        """The path of a shard without a suffix."""
        return self.folder / f"{shard:05}"

    def span(self, shard: int) -> range:
        """The numbers of its images."""
        start = shard * self.per_shard
        return range(start, min(start + self.per_shard, self.facts.number))

    def shape(self, shard: int) -> tuple[int, int, int, int]:
        """(m, C, H, W) of a shard."""
        return len(self.span(shard)), self.facts.channels, *self.facts.image_hw

    def lock(self) -> FileLock:
        """Who builds or deletes the set holds it."""
        return FileLock(self.folder.with_suffix(".lock"))

    def note_use(self) -> None:
        """Write its facts where they are missing, and that it is used now.

        They are not written anew: who uses the set holds a lock on this very file.
        """
        with suppress(FileNotFoundError):
            os.utime(self.folder / FACTS_FILE)
            return
        self.write_facts()

    def write_facts(self) -> None:
        """Write its facts; who does so builds the set, so that nobody uses it yet."""
        told = self.facts.model_dump_json(exclude_none=True)
        write_text(self.folder / FACTS_FILE, told + "\n")

    def hold(self) -> int:
        """Keep the set from being deleted as long as the descriptor that is returned is open.

        Raises:
            OSError: it is not there.
        """
        descriptor = os.open(self.folder / FACTS_FILE, os.O_RDONLY)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return descriptor

    def clean(self) -> None:
        """Delete what a killed builder has left half written."""
        for path in self.folder.glob(".vitnas.*.tmp"):
            path.unlink(missing_ok=True)

    def delete(self) -> bool:
        """Delete it, unless a process builds or uses it; whether it is gone."""
        try:
            with self.lock().acquire(timeout=0), (self.folder / FACTS_FILE).open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                names = [path.name for path in self.folder.iterdir() if _is_ours(path.name)]
                remove_folder(self.folder, sorted(names))  # its facts last: a part is listed, too
        except (Timeout, OSError):
            return False
        return not (self.folder / FACTS_FILE).exists()


def set_of(
    home: Path, root: Path, files: Sequence[ImageFile], image_hw: tuple[int, int]
) -> ImageSet:
    """The set of these files, which are below `root`, at this size."""
    whole = os.path.realpath(root)
    same = [_FORMAT, whole, image_hw, _METHOD, PIL.__version__]
    start = len(str(root))
    told = "".join([f"\0{path[start:]}\0{size}\0{time}" for path, _, size, time in files])
    facts = SetFacts(root=whole, image_hw=image_hw, number=len(files))
    return _named(home, json.dumps(same) + told, facts)


def set_of_items(home: Path, told: str, facts: SetFacts) -> ImageSet:
    """The set of images of which `told` says what they are, before they are resized."""
    same = [_FORMAT, "items", facts.image_hw, PIL.__version__]
    return _named(home, f"{json.dumps(same)}\0{told}", facts)


def _named(home: Path, told: str, facts: SetFacts) -> ImageSet:
    name = hashlib.sha256(os.fsencode(told)).hexdigest()[:16]
    return ImageSet(home / name, facts.model_copy(update={"root": _utf8(facts.root)}))


def _is_ours(name: str) -> bool:
    is_shard = name[:5].isdigit() and name[5:] in (".npy", ".npz")
    return is_shard or name == FACTS_FILE or (name.startswith(".vitnas.") and name.endswith(".tmp"))


def _utf8(text: str) -> str:
    return os.fsencode(text).decode("utf-8", "backslashreplace")
