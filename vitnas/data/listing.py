"""The files of an image folder, by class, without opening any of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitnas.config.training import DataConfig, class_names, is_junk
from vitnas.data.source import damaged, fingerprint_of, is_folder, root_of
from vitnas.errors import DataError

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"}

Listed = tuple[Path, int]
"""An image's file and the number of its class."""


@dataclass(frozen=True)
class Folder:
    """Paths of an image folder, each with the number of its class.

    Attributes:
        root: the folder.
        classes: names of the classes, in the order of their numbers.
        train: what is below `train/`.
        held: what is below `test/` or `val/`; empty where there is neither.
    """

    root: Path
    classes: tuple[str, ...]
    train: list[Listed]
    held: list[Listed]

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the training images' names and sizes."""
        parts = [
            os.fsencode(f"\0{path.relative_to(self.root)}\0{number}\0{_size(path)}")
            for path, number in self.train
        ]
        return fingerprint_of(self.classes, parts, len(parts))


def list_folder(config: DataConfig) -> Folder:
    """List the images of an `imagefolder`.

    Hidden files, `Thumbs.db` and other files that are no images are skipped, as are links to
    folders inside a class.

    Raises:
        DataError: a folder is missing or cannot be read, there are fewer than two classes, or a
            class has no images.
    """
    root = root_of(config)
    train = root / "train"
    if not is_folder(train):
        damaged(config, train, "no such folder")
    classes = _classes(train)
    if len(classes) < 2:
        damaged(config, train, f"{len(classes)} class folders, and two are needed")
    held = next((root / name for name in ("test", "val") if is_folder(root / name)), None)
    if held is None:
        return Folder(root, classes, _list_part(config, train, classes, classes), [])
    present = _classes(held)
    if strange := sorted(set(present) - set(classes)):
        damaged(config, held, f"class '{strange[0]}' is not in {train}")
    if not present:
        damaged(config, held, "no image in it")
    parts = [(train, classes), (held, present)]
    return Folder(root, classes, *(_list_part(config, *part, classes) for part in parts))


def images_below(folder: Path) -> list[Path]:
    """Every image below `folder`, sorted.

    Raises:
        DataError: a folder cannot be read.
    """
    return sorted(_walk(folder))


def _list_part(
    config: DataConfig, folder: Path, present: Sequence[str], classes: Sequence[str]
) -> list[Listed]:
    """Every image of the classes that are `present` in `folder`, by class, then by path."""
    listed: list[Listed] = []
    for name in present:
        found = images_below(folder / name)
        if not found:
            damaged(config, folder / name, "no image in it")
        number = classes.index(name)
        listed += [(path, number) for path in found]
    return listed


def _classes(folder: Path) -> tuple[str, ...]:
    try:
        os.scandir(folder).close()
    except OSError as error:
        _refuse(error)
    return class_names(folder)


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not is_junk(name)]
        for name in names:
            path = Path(parent, name)
            if path.suffix.lower() in _SUFFIXES and not is_junk(name):
                yield path


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read: {error.strerror or error}") from None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
