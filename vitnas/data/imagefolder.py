"""Image folders, train/<class>/<image>: all files are read or checked at once.

A file that cannot be read is named, skipped and counted. More than 1 % of them are an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path

import torch
from torch import Tensor

from vitnas.config.training import DataConfig
from vitnas.cores import cores
from vitnas.data.decode import (
    BrokenImage,
    check_readable,
    fitted,
    read_rgb,
    without_warnings,
)
from vitnas.data.listing import Folder, Listed, list_folder
from vitnas.data.source import DataSource, ImageHW, Labelled, check_images_fit
from vitnas.errors import DataError

MOST_BROKEN = 0.01
"""Share of the files that may be broken."""
_NAMED = 3


def read(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """The whole folder in memory."""
    folder = list_folder(config)
    check_images_fit(config, len(folder.train) + len(folder.held), 3, image_hw)
    train, broken = _read_sound(folder.train, image_hw)
    test, more = _read_sound(folder.held, image_hw)
    skipped = tuple(map(str, broken + more))
    return DataSource(
        train, test if folder.held else None, folder.classes, folder.fingerprint, skipped
    )


def read_files(files: Sequence[Listed], image_hw: ImageHW) -> Labelled:
    """Image files, scaled to cover `image_hw` = (H, W) pixels and cut to it.

    Raises:
        DataError: names those that cannot be read.
    """
    images, broken = _read_each([path for path, _ in files], image_hw)
    if broken:
        raise DataError(_named(list(broken.values())))
    return images, _labels(files)


def list_sound(config: DataConfig) -> tuple[Folder, tuple[str, ...]]:
    """The images of a folder that can be read, and why others cannot. Every file is opened.

    Raises:
        DataError: as `list_folder`; or more than 1 % of the files are broken.
    """
    folder = list_folder(config)
    train, broken = _check_sound(folder.train)
    held, more = _check_sound(folder.held)
    return replace(folder, train=train, held=held), tuple(map(str, broken + more))


def _read_sound(files: Sequence[Listed], image_hw: ImageHW) -> tuple[Labelled, list[BrokenImage]]:
    images, broken = _read_each([path for path, _ in files], image_hw)
    _refuse_many(broken, len(files))
    if broken:
        kept = [index for index in range(len(files)) if index not in broken]
        images, files = images[kept], [files[index] for index in kept]
    return (images, _labels(files)), list(broken.values())


def _check_sound(files: Sequence[Listed]) -> tuple[list[Listed], list[BrokenImage]]:
    broken = _broken(partial(_check_one, files), len(files))
    _refuse_many(broken, len(files))
    kept = [file for index, file in enumerate(files) if index not in broken]
    return kept, list(broken.values())


def _check_one(files: Sequence[Listed], index: int) -> None:
    check_readable(files[index][0])


def _read_each(paths: Sequence[Path], image_hw: ImageHW) -> tuple[Tensor, dict[int, BrokenImage]]:
    images = torch.empty(len(paths), 3, *image_hw, dtype=torch.uint8)

    def read_one(index: int) -> None:
        images[index] = fitted(read_rgb(paths[index]), image_hw)

    return images, _broken(read_one, len(paths))


def _broken(visit: Callable[[int], None], number: int) -> dict[int, BrokenImage]:
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


def _refuse_many(broken: dict[int, BrokenImage], number: int) -> None:
    if len(broken) > MOST_BROKEN * number:
        share = f"{len(broken)} of {number:,} images cannot be read, more than {MOST_BROKEN:.0%}"
        raise DataError(f"{_named(list(broken.values()))}: {share}")


def _named(broken: Sequence[BrokenImage]) -> str:
    more = f"; and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
    return "; ".join(map(str, broken[:_NAMED])) + more


def _labels(files: Sequence[Listed]) -> Tensor:
    return torch.tensor([number for _, number in files], dtype=torch.int64)
