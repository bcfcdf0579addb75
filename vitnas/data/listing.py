"""The files of an image folder, by class, without opening any of them."""

from __future__ import annotations

import gc
import os
import resource
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

from vitnas.config.data import DataConfig, class_names, is_junk
from vitnas.config.differences import SCORING, TESTED
from vitnas.data.imageset import ImageFile
from vitnas.data.place import classes_of, damaged, fingerprint_of, root_of
from vitnas.errors import DataError
from vitnas.files import is_folder
from vitnas.words import plural

_PROBED = 8  # folders whose listing tells whether the disk is waited for
_THREADS = 16  # that wait for it at once
_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")


@dataclass(frozen=True)
class Folder:
    """The files of an image folder.

    Attributes:
        root: the folder.
        classes: names of the classes that are used, in the order of their numbers.
        train: what is below `train/`.
        test: what is below `test/` or `val/`; empty where there is neither.
        val: what is below the folder whose images score candidates; None where these are held out
            of `train`.
    """

    root: Path
    classes: tuple[str, ...]
    train: list[ImageFile]
    test: list[ImageFile]
    val: list[ImageFile] | None = None

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The fingerprint of the training images' names and sizes, and of those of `val` and of
        `test`."""
        found = fingerprint_of(self.classes, [self._told(self.train)], len(self.train))
        for name, files in ((SCORING, self.val), (TESTED, self.test)):
            if files:
                other = fingerprint_of(self.classes, [self._told(files)], len(files))
                found[name] = other["digest"]
        return found

    def _told(self, files: Sequence[ImageFile]) -> bytes:
        start = len(str(self.root / "x")) - 1
        return os.fsencode(
            "".join([f"\0{path[start:]}\0{n}\0{size}" for path, n, size, _ in files])
        )


def list_folder(config: DataConfig) -> Folder:
    """List the images of an `imagefolder`.

    Hidden files, `Thumbs.db` and other files that are no images are skipped, as are links to
    folders inside a class.

    Raises:
        DataError: a folder is missing or cannot be read, there are fewer than two classes, or a
            class has no images.
    """
    root, there = class_folders(config)
    train = root / "train"
    classes = classes_of(config, there, str(train))

    def held(name: str) -> list[ImageFile]:
        return _list_held(config, root / name, there, classes)

    test = next((x for x in ("test", "val") if x != config.val_split and is_folder(root / x)), None)
    return Folder(
        root,
        classes,
        train=_list_part(config, train, classes, classes),
        test=[] if test is None else held(test),
        val=None if config.val_split is None else held(config.val_split),
    )


def class_folders(config: DataConfig) -> tuple[Path, tuple[str, ...]]:
    """The root of an `imagefolder` and the names of the folders in its `train/`; lists no image.

    Raises:
        DataError: a folder is missing, or there are fewer than two classes.
    """
    root = root_of(config)
    train = root / "train"
    if not is_folder(train):
        damaged(config, train, "no such folder")
    there = _classes(train)
    if len(there) < 2:
        damaged(config, train, f"{plural(len(there), 'class folder')}, and two are needed")
    return root, there


def images_below(folder: Path, number: int = 0) -> list[ImageFile]:
    """Every image below `folder`, sorted by path, as of the class `number`.

    Raises:
        DataError: a folder cannot be read.
    """
    found, folders = list[ImageFile](), [str(folder)]
    for below in folders:  # which grows
        with _opened(below) as place:
            for name in sorted([entry.name for entry in os.scandir(place)]):
                if is_junk(name):
                    continue
                path, there = f"{below}/{name}", _told(name, place)
                if there is not None and stat.S_ISDIR(there.st_mode):
                    if not Path(path).is_symlink():
                        folders.append(path)
                elif name.lower().endswith(_SUFFIXES):
                    size, time = (-1, 0) if there is None else (there.st_size, there.st_mtime_ns)
                    found.append(ImageFile(path, number, size, time))
    if len(folders) == 1:
        return found  # in the order of their names: the paths differ in their last part alone
    return sorted(found, key=lambda file: file.path.split("/"))


def _list_held(
    config: DataConfig, folder: Path, there: Sequence[str], classes: Sequence[str]
) -> list[ImageFile]:
    """Every image of the `classes` in a folder that may lack some of those that are `there`."""
    if not is_folder(folder):
        damaged(config, folder, f"no such folder, and val_split: {config.val_split} needs it")
    present = _classes(folder)
    if strange := sorted(set(present) - set(there)):
        damaged(config, folder, f"class '{strange[0]}' is not in {folder.parent / 'train'}")
    found = _list_part(config, folder, [x for x in present if x in set(classes)], classes)
    if not found:
        damaged(config, folder, "no image in it" if not present else "no image of these classes")
    return found


def _list_part(
    config: DataConfig, folder: Path, present: Sequence[str], classes: Sequence[str]
) -> list[ImageFile]:
    """Every image of the classes that are `present` in `folder`, by class, then by path."""
    numbers = {name: number for number, name in enumerate(classes)}
    listed: list[ImageFile] = []
    with _without_collector():
        each = _each([(folder / name, numbers[name]) for name in present])
        for name, found in zip(present, each, strict=True):
            if not found:
                damaged(config, folder / name, "no image in it")
            listed += found
    return listed


def _each(folders: Sequence[tuple[Path, int]]) -> Iterator[list[ImageFile]]:
    """The images below each folder. Threads list them where the disk is waited for, as over a
    network. What the system has in memory takes them longer than one thread alone."""
    before, first, rest = _waits(), folders[:_PROBED], folders[_PROBED:]
    for folder, number in first:
        yield images_below(folder, number)
    if _waits() - before < len(first):
        for folder, number in rest:
            yield images_below(folder, number)
        return
    with ThreadPool(_THREADS) as pool:
        yield from pool.imap(lambda one: images_below(*one), rest)


def _waits() -> int:
    """How often this thread has waited for the disk or another thread."""
    return resource.getrusage(getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)).ru_nvcsw


@contextmanager
def _without_collector() -> Iterator[None]:
    """Leave out the search for circles of objects, which visits all files again and again: half of
    the time that a large folder takes. Lists of files have no circles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _classes(folder: Path) -> tuple[str, ...]:
    with _opened(str(folder)):
        return class_names(folder)


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    """A descriptor of a folder.

    Raises:
        DataError: it cannot be read.
    """
    try:
        place = os.open(folder, os.O_RDONLY)
        try:
            yield place
        finally:
            os.close(place)
    except OSError as error:
        raise DataError(f"{folder}: cannot be read: {error.strerror or error}") from None


def _told(name: str, place: int) -> os.stat_result | None:
    """What the system says of a file in an open folder, which is quicker than by its whole path;
    None where it says nothing."""
    try:
        return os.stat(name, dir_fd=place)
    except OSError:
        return None
