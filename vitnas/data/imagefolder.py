"""Image folders, train/<class>/<image>: the files that a run uses are read or checked at once.

A file that cannot be read is named, skipped and counted. More than 1 % of them are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.cores import cores
from vitnas.data.build import FilesOrigin, announce, complete
from vitnas.data.cache import home
from vitnas.data.decode import (
    BrokenImage,
    check_readable,
    fitted,
    named,
    read_rgb,
    refuse_many,
    without_warnings,
)
from vitnas.data.imageset import ImageFile, set_of
from vitnas.data.listing import Folder, list_folder
from vitnas.data.rows import Rows
from vitnas.data.shards import Shards
from vitnas.data.source import (
    DataSource,
    ImageHW,
    Labelled,
    Used,
    check_images_fit,
    everything,
    split_by_class,
)
from vitnas.data.telling import SILENT, Teller
from vitnas.errors import DataError


def read(
    config: DataConfig, sizes: Iterable[ImageHW], used: Used = everything, teller: Teller = SILENT
) -> dict[ImageHW, DataSource]:
    """The training images of a folder that are `used`, and all its others, at each size.

    The folder is listed once, so that images of all sizes are of the same files. Their pixels are
    in the user's cache, where they are put if they are not; or in memory, where there is no cache.
    """
    folder = list_folder(config)
    wanted = used(labels_of(folder.train))
    return {size: _read(config, folder, wanted, size, teller) for size in sizes}


def _read(
    config: DataConfig,
    folder: Folder,
    wanted: Tensor,
    image_hw: ImageHW,
    teller: Teller,
) -> DataSource:
    """The training images of the numbers `wanted`, and all others, at one size."""
    if home() is None:
        number = len(wanted) + len(folder.test) + len(folder.val or ())
        check_images_fit(config, number, 3, image_hw, copies=1)
    asked = {"train": (folder.train, wanted)}
    asked |= {
        name: (files, torch.arange(len(files)))
        for name, files in (("val", folder.val), ("test", folder.test))
        if files
    }
    parts = [_chosen(*part) for part in asked.values()]
    found, skipped = dict[str, Labelled](), list[str]()
    stored = _stored(folder.root, parts, image_hw, teller)
    for (name, part), (store, broken) in zip(asked.items(), stored, strict=True):
        kept, places = _kept(*part, broken)
        found[name] = Rows(store, places), labels_of(kept)
        skipped.extend(map(str, broken.values()))
    return DataSource(
        found["train"],
        found.get("test"),
        folder.classes,
        folder.fingerprint,
        tuple(skipped),
        found.get("val"),
        is_whole=False,
    )


def read_stored(
    root: Path, files: Sequence[ImageFile], image_hw: ImageHW, teller: Teller = SILENT
) -> Labelled:
    """Image files of the folder `root`, scaled to cover `image_hw` = (H, W) pixels and cut to it;
    in the user's cache, where there is one.

    Raises:
        DataError: names those that cannot be read.
    """
    if not files:
        return torch.empty(0, 3, *image_hw, dtype=torch.uint8), labels_of(files)
    ((store, broken),) = _stored(root, [files], image_hw, teller)
    if broken:
        raise DataError(named(list(broken.values())))
    return Rows(store, torch.arange(len(files))), labels_of(files)


def read_files(
    files: Sequence[ImageFile], image_hw: ImageHW
) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Image files that can be read, scaled and cut as by `read_stored`, in memory.

    Returns:
        (n, 3, H, W) uint8, their classes (n,) int64, and why others cannot be read.

    Raises:
        DataError: more than 1 % of them are broken.
    """
    images, broken = _read_each(files, image_hw)
    refuse_many(list(broken.values()), len(files))
    sound = torch.tensor([n for n in range(len(files)) if n not in broken], dtype=torch.int64)
    return images[sound], labels_of(files)[sound], tuple(map(str, broken.values()))


@dataclass(frozen=True)
class Checked:
    """A folder whose files were opened, as far as they are used.

    Attributes:
        folder: the folder; without its broken files where all were opened.
        sound: (n,) bool, which of `folder.train` were opened and can be read.
        skipped: why others cannot.
        fingerprint: of all files that are listed, as a search has it.
    """

    folder: Folder
    sound: Tensor
    skipped: tuple[str, ...]
    fingerprint: dict[str, Any]


def check_folder(config: DataConfig, used: Used = everything) -> Checked:
    """Open the training images of a folder that are `used`, and all its others.

    Raises:
        DataError: as `list_folder`; or more than 1 % of them are broken.
    """
    folder = list_folder(config)
    skipped: list[str] = []

    def checked(files: list[ImageFile], wanted: Tensor) -> tuple[list[ImageFile], Tensor]:
        broken = _check_each(_chosen(files, wanted))
        skipped.extend(map(str, broken.values()))
        return _kept(files, wanted, broken)

    def whole(files: list[ImageFile]) -> list[ImageFile]:
        return checked(files, torch.arange(len(files)))[0]

    train, places = checked(folder.train, used(labels_of(folder.train)))
    val = None if folder.val is None else whole(folder.val)
    found = Folder(folder.root, folder.classes, train, whole(folder.test), val)
    return Checked(found, places >= 0, tuple(skipped), folder.fingerprint)


def split_folder(config: DataConfig, folder: Folder) -> tuple[Folder, Tensor, Tensor]:
    """The `folder` without its broken training images, and the numbers of those that train and of
    those that are held out: the split of a search and of a training that use all images.

    Every training image is opened: one that is broken would shift the split, and images that have
    trained would score.

    Raises:
        DataError: more than 1 % of them are broken.
    """
    numbers = torch.arange(len(folder.train))
    train, _ = _kept(folder.train, numbers, _check_each(folder.train))
    split = split_by_class(labels_of(train), config.val_fraction, config.split_seed)
    return replace(folder, train=train), *split


def labels_of(files: Sequence[ImageFile]) -> Tensor:
    """(n,) int64, the class of each."""
    return torch.tensor([file.number for file in files], dtype=torch.int64)


_Broken = dict[int, BrokenImage]
_Store = Tensor | Shards


def _chosen(files: Sequence[ImageFile], wanted: Tensor) -> list[ImageFile]:
    return [files[number] for number in wanted.tolist()]


def _kept(
    files: list[ImageFile], wanted: Tensor, broken: _Broken
) -> tuple[list[ImageFile], Tensor]:
    """The files that count once those of the numbers `wanted` were visited.

    Where these are all files, the broken ones are as if they were not in the folder. Of others
    nobody knows whether they are broken, so that all count, and broken ones are not there.

    Returns:
        The files that count, and the place of each among `wanted` (-1: not there).

    Raises:
        DataError: too many are broken.
    """
    refuse_many(list(broken.values()), len(wanted))
    places = torch.full((len(files),), -1)
    places[wanted] = torch.arange(len(wanted))
    if broken:
        places[wanted[list(broken)]] = -1
    if len(wanted) == len(files):
        sound = (places >= 0).nonzero().squeeze(1)
        return _chosen(files, sound), places[sound]
    return files, places


def _stored(
    root: Path, parts: Sequence[Sequence[ImageFile]], image_hw: ImageHW, teller: Teller
) -> Iterator[tuple[_Store, _Broken]]:
    """The pixels of each part's files, in the cache where there is one, and those that are broken.

    What will be read of all parts is told before the first one is.
    """
    place = home()
    if place is None:
        return (_read_each(files, image_hw) for files in parts)
    origins = [FilesOrigin(set_of(place, root, files, image_hw), files) for files in parts]
    announce(origins, teller)
    return (_completed(origin, teller) for origin in origins)


def _completed(origin: FilesOrigin, teller: Teller) -> tuple[Shards, _Broken]:
    found, broken = complete(origin, teller), _Broken()
    for shard, facts in enumerate(found):
        for number, reason in facts.broken.items():
            index = origin.images.span(shard)[number]
            broken[index] = BrokenImage(Path(origin.files[index].path), reason)
    return Shards(origin.images, found), broken


def _check_each(files: Sequence[ImageFile]) -> _Broken:
    return _broken(lambda index: check_readable(Path(files[index].path)), len(files))


def _read_each(files: Sequence[ImageFile], image_hw: ImageHW) -> tuple[Tensor, _Broken]:
    images = torch.empty(len(files), 3, *image_hw, dtype=torch.uint8)

    def read_one(index: int) -> None:
        images[index] = torch.from_numpy(fitted(read_rgb(Path(files[index].path)), image_hw))

    return images, _broken(read_one, len(files))


def _broken(visit: Callable[[int], None], number: int) -> _Broken:
    """By index, the files that raise `BrokenImage` when they are visited; on all cores."""

    def problem(index: int) -> BrokenImage | None:
        try:
            visit(index)
        except BrokenImage as error:
            return error
        return None

    with without_warnings(), ThreadPool(cores()) as pool:
        found = enumerate(pool.imap(problem, range(number), chunksize=16))
        return {index: error for index, error in found if error is not None}
