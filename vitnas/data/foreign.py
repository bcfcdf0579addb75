"""Data sets of other packages: torch data sets of training and test images.

A package announces a function that gives them under the entry point group `vitnas.datasets`, or a
file names it by its path `package.module:function`; see docs/extend.md. For timm's see `timm_sets`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from vitnas import plugins
from vitnas.config.data import GROUP, TIMM, DataConfig
from vitnas.config.differences import SCORING, TESTED
from vitnas.data.cache import home
from vitnas.data.decode import BrokenImage, refuse_many, without_warnings
from vitnas.data.in_turn import read_in_turn
from vitnas.data.items import (
    Item,
    digest_of,
    is_in_turn,
    items,
    refuse,
    refuse_channels,
    resized,
    total_digest,
)
from vitnas.data.kept import Part, read_kept
from vitnas.data.source import DataSource, ImageHW, check_images_fit
from vitnas.data.telling import SILENT, Teller
from vitnas.data.timm_sets import key_of, left_out, name_of, open_timm

_CHUNK = 1024


def read(config: DataConfig, image_hw: ImageHW, teller: Teller = SILENT) -> DataSource:
    """Every image of the data set, as bytes of `image_hw` = (H, W) pixels.

    Those of timm are in the user's cache where it can be told whether they have changed. Others are
    in memory.

    Raises:
        ConfigError: the function cannot be imported.
        DataError: it fails, returns something other than two data sets of images and labels, or all
            training images are of one class.
    """
    train, test = _open(config)
    known = _read_part(config, train, 0, image_hw, teller)
    held = None if test is None else _read_part(config, test, 1, image_hw, teller)
    classes = _classes(config, train, known.labels)
    for part in filter(None, (known, held)):
        if int(part.labels.max()) >= len(classes):
            largest = int(part.labels.max())
            refuse(config, f"label {largest} where the largest is {len(classes) - 1}")
    if len(known.labels.unique()) < 2:
        refuse(config, "has training images of 1 class, and two are needed")
    same = {"num_images": len(known.labels), "num_classes": len(classes), "digest": known.digest}
    if held is not None:
        same[TESTED if config.val_split is None else SCORING] = held.digest
    skipped = known.skipped + (() if held is None else held.skipped)
    tested = None if held is None else (held.images, held.labels)
    return DataSource((known.images, known.labels), tested, classes, same, skipped)


def describe(config: DataConfig) -> tuple[int, int]:
    """Number of classes and of channels, for a network that is made for the data."""
    train, _ = _open(config)
    sound = (item for item in items(config, train) if not isinstance(item, BrokenImage))
    first = next(sound, None)
    if first is None:
        refuse(config, "gives a data set without images")
    pixels, label = first
    if getattr(train, "classes", None):
        return len(_classes(config, train, torch.empty(0))), len(pixels)
    return max([label, *(label for _, label in sound)]) + 1, len(pixels)


def _open(config: DataConfig) -> tuple[Any, Any]:
    """Both data sets; the second may be None."""
    if config.name == TIMM:
        return open_timm(config)
    make = plugins.load(plugins.path_of(config.name, GROUP, what="data set"), address="data.name")
    try:
        given = make() if config.folder is None else make(config.folder)
        train, test = given
        sizes = [len(part) for part in (train, test) if part is not None]
    except Exception as error:
        refuse(config, "must give (train, test), data sets with a length", error)
    if not all(sizes):
        refuse(config, "gives a data set without images")
    return train, test


def _read_part(
    config: DataConfig, data: Any, number: int, image_hw: ImageHW, teller: Teller
) -> Part:
    """The training images (`number` 0) or the test images (1)."""
    if config.name != TIMM:
        return _read_all(config, data, image_hw)
    part = _kept(config, data, number, image_hw, teller)
    if is_in_turn(data):
        lines = left_out(config, data, len(part.labels))
        return replace(part, skipped=part.skipped + lines)
    return part


def _kept(config: DataConfig, data: Any, number: int, image_hw: ImageHW, teller: Teller) -> Part:
    """Images of timm's in the cache, or in memory where that cannot be."""
    place = home()
    if place is None:
        return _read_all(config, data, image_hw)
    key = key_of(config, data, number)
    if key is None:
        why = "nothing tells whether it has changed"
        teller.notice(f"{name_of(config)}: is decoded at each start and held in memory: {why}")
        return _read_all(config, data, image_hw)
    read = read_in_turn if is_in_turn(data) else read_kept
    return read(place, key, config, data, image_hw, teller)


class _Gathered:
    """Images that come one after the other, brought to one size.

    Args:
        config: names the data set in errors.
        image_hw: (H, W) in pixels.
        number: how many will come, as far as that is known.
    """

    def __init__(self, config: DataConfig, image_hw: ImageHW, number: int) -> None:
        self._config, self._image_hw, self._number = config, image_hw, number
        self._parts, self._last, self._labels = list[Tensor](), list[Tensor](), list[int]()
        self._digests = bytearray()

    def add(self, item: Item) -> None:
        pixels, label = item
        if not self._labels:
            self._channels = len(pixels)
            check_images_fit(self._config, self._number, len(pixels), self._image_hw)
        refuse_channels(self._config, len(self._labels), item, self._channels)
        self._digests += digest_of(item)
        self._labels.append(label)
        self._last.append(resized(pixels, self._image_hw))
        if len(self._last) == _CHUNK:
            held = len(self._labels)  # which are copied once, when all have come
            check_images_fit(self._config, held, self._channels, self._image_hw, copies=1)
            self._parts.append(torch.stack(self._last))
            self._last = []

    def all(self, skipped: Iterable[BrokenImage]) -> Part:
        last = [torch.stack(self._last)] if self._last else []
        images, labels = torch.cat([*self._parts, *last]), torch.tensor(self._labels)
        return Part(images, labels, total_digest(bytes(self._digests)), tuple(map(str, skipped)))


def _read_all(config: DataConfig, data: Any, image_hw: ImageHW) -> Part:
    """Every image and its class, in memory."""
    told = len(data) if hasattr(data, "__len__") else 0
    gathered, broken, number = _Gathered(config, image_hw, told), list[BrokenImage](), 0
    with without_warnings():
        for item in items(config, data):
            number += 1
            if isinstance(item, BrokenImage):
                broken.append(item)
            else:
                gathered.add(item)
    refuse_many(broken, number)
    if not number:
        refuse(config, "gives a data set without images")
    return gathered.all(broken)


def _classes(config: DataConfig, train: Any, labels: Tensor) -> tuple[str, ...]:
    """The names in `classes`, as torchvision's data sets have them, or numbers."""
    given = getattr(train, "classes", None)
    if given:
        return tuple(map(str, given))
    return tuple(map(str, range(int(labels.max()) + 1)))
