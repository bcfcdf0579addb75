"""Image files as a network takes them, decoded on all cores while it works; in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import torch
from PIL import Image
from torch import Tensor

from vitnas.cores import cores
from vitnas.data.ahead import made_ahead
from vitnas.data.decode import (
    BrokenImage,
    fitted,
    planes,
    read_grey,
    read_rgb,
    without_warnings,
)
from vitnas.data.listing import images_below
from vitnas.data.source import ImageHW
from vitnas.errors import ConfigError, DataError
from vitnas.exported.preprocessing import Preprocessing

BATCH = 64
"""Images that a network is asked about at once."""
_AHEAD = 2 * BATCH  # images that are decoded before they are asked for
_READERS = {1: read_grey, 3: read_rgb}
_Item = TypeVar("_Item")
Decoded = tuple[Path, Tensor | BrokenImage]


def check_channels(name: str, channels: int) -> None:
    """Refuse a network whose input is no image file's.

    Raises:
        ConfigError: it has neither one channel nor three.
    """
    if channels not in _READERS:
        rule = "image files are grey or in colour: 1 channel or 3"
        raise ConfigError(rule, address=f"{name}: in_chans", value=channels)


def listed(images: str | Path | Iterable[str | Path]) -> list[Path]:
    """The files that are named, and the images below folders that are; in the order given.

    One path alone is one file or folder: letter by letter a text would name the machine's root.

    Raises:
        DataError: a folder cannot be read, or has no image.
    """
    found: list[Path] = []
    for path in map(Path, [images] if isinstance(images, str | Path) else images):
        below = [Path(file.path) for file in images_below(path)] if path.is_dir() else [path]
        if not below:
            raise DataError(f"{path}: has no image")
        found += below
    return found


def decoded(
    paths: Iterable[Path], how: Preprocessing, channels: int, image_hw: ImageHW
) -> Iterator[Decoded]:
    """Each file with its pixels (C, H, W) uint8, or with what is wrong with it; in their order."""

    def decode(path: Path) -> Decoded:
        try:
            return path, prepared(path, how, channels, image_hw)
        except BrokenImage as error:
            return path, error

    with without_warnings():
        yield from made_ahead(decode, paths, cores(), _AHEAD)


def prepared(path: Path, how: Preprocessing, channels: int, image_hw: ImageHW) -> Tensor:
    """The pixels of an image file (C, H, W) uint8 as a network takes them, before normalisation.

    Raises:
        BrokenImage: it cannot be read.
    """
    image, by = _READERS[channels](path), Image.Resampling[how.interpolation.upper()]
    if how.fit == "stretch":
        return torch.from_numpy(planes(image.resize(image_hw[::-1], by)))
    return torch.from_numpy(fitted(image, image_hw, by, how.border))


def normalised(pixels: Tensor, how: Preprocessing) -> Tensor:
    """(B, C, H, W) uint8 -> float32, as the network's training had them."""
    mean, std = (255 * torch.tensor(v, dtype=torch.float64) for v in (how.mean, how.std))
    return pixels.float().sub_(mean.float()[:, None, None]).div_(std.float()[:, None, None])


def dealt(items: Iterable[_Item], size: int = BATCH) -> Iterator[Sequence[_Item]]:
    """The items in lists of `size`, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
