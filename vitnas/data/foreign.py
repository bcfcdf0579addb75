"""Data sets of other packages: torch data sets of training and test images.

A package announces a function that gives them under the entry point group `vitnas.datasets`, or a
file names it by its path `package.module:function`; see docs/extend.md. For timm's see `timm_sets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset

from vitnas import plugins
from vitnas.config.data import GROUP, TIMM, DataConfig
from vitnas.config.differences import DIGEST, LISTED, SCORING, TESTED
from vitnas.data.cache import home
from vitnas.data.decode import BrokenImage, refuse_many, without_warnings
from vitnas.data.in_turn import read_in_turn, told_length
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
from vitnas.data.place import classes_of
from vitnas.data.rows import Rows
from vitnas.data.source import (
    DataSource,
    ImageHW,
    Labelled,
    Used,
    check_images_fit,
    everything,
    renumbered,
)
from vitnas.data.telling import SILENT, Teller
from vitnas.data.timm_images import known_labels, list_of
from vitnas.data.timm_sets import key_of, left_out, name_of, open_timm
from vitnas.words import plural

_CHUNK = 1024


def read(
    config: DataConfig, image_hw: ImageHW, used: Used = everything, teller: Teller = SILENT
) -> DataSource:
    """The images of the data set, as bytes of `image_hw` = (H, W) pixels.

    Those of timm are in the user's cache where it can be told whether they have changed. Others are
    in memory. Where the class of each training image is known before it is read (`known_labels`),
    only those are read that are `used`; else all are.

    Raises:
        ConfigError: the function cannot be imported; or what `used` raises.
        DataError: it fails, returns something other than two data sets of images and labels, or all
            training images are of one class.
    """
    train, test = _open(config)
    labels = _labels(config, train)
    wanted = _wanted(config, train, labels, used)
    known = _read_part(config, train, 0, image_hw, teller, wanted)
    held = None if test is None else _read_part(config, test, 1, image_hw, teller)
    if held is not None and (channels := held.images.shape[1]) != known.images.shape[1]:
        rule = f"has test images with {plural(channels, 'channel')}"
        refuse(config, f"{rule}, and training images with {known.images.shape[1]}")
    pair = _spread(config, known, labels, wanted)
    classes = _classes(config, train, pair[1])
    _check_labels(config, classes, pair[1], None if held is None else held.labels)
    same: dict[str, Any] = {"num_classes": len(classes)}
    if wanted is None:
        same = {"num_images": len(known.labels), **same, DIGEST: known.digest}
    if held is not None:
        same[TESTED if config.val_split is None else SCORING] = held.digest
    if labels is not None:
        same[LISTED] = list_of(train, classes, labels)
    skipped = known.skipped + (() if held is None else held.skipped)
    tested = None if held is None else (held.images, held.labels)
    return DataSource(pair, tested, classes, same, skipped, is_whole=wanted is None)


def describe(config: DataConfig) -> tuple[int, int]:
    """Number of classes and of channels, for a network that is made for the data."""
    train, _ = _open(config)
    sound = (item for item in items(config, train) if not isinstance(item, BrokenImage))
    first = next(sound, None)
    if first is None:
        refuse(config, "gives a data set without images")
    pixels, label = first
    labels = _labels(config, train)
    if _names(train) or labels is not None:
        return len(_classes(config, train, labels)), len(pixels)
    return max([label, *(label for _, label in sound)]) + 1, len(pixels)


def _open(config: DataConfig) -> tuple[Any, Any]:
    """Both data sets; the second may be None."""
    if config.name == TIMM:
        return open_timm(config)
    make = plugins.load(plugins.path_of(config.name, GROUP, what="data set"), address="data.name")
    try:
        given = make() if config.folder is None else make(config.folder)
    except Exception as error:
        refuse(config, "its function fails", error)
    try:
        train, test = given
        sizes = [len(part) for part in (train, test) if part is not None]
    except Exception as error:
        refuse(config, "must give (train, test), data sets with a length", error)
    if not all(sizes):
        refuse(config, "gives a data set without images")
    return train, test


def _labels(config: DataConfig, train: Any) -> Tensor | None:
    """(n,) int64, the classes of the training images; None where they are known once the images
    were read."""
    return known_labels(train) if config.name == TIMM else None


def _wanted(config: DataConfig, train: Any, labels: Tensor | None, used: Used) -> Tensor | None:
    """(m,) int64, the numbers of the training images that are `used`, of the classes that `config`
    names; None where all of them are, or where no `labels` are known."""
    if labels is None:
        return None
    names = _classes(config, train, labels)
    _check_labels(config, names, labels)
    ours = renumbered(names, classes_of(config, names, config.name))[labels]
    inside = (ours >= 0).nonzero().squeeze(1)
    chosen = used(ours[inside])
    return None if len(chosen) == len(inside) else inside[chosen]


def _spread(
    config: DataConfig, part: Part, labels: Tensor | None, wanted: Tensor | None
) -> Labelled:
    """All training images and their classes; those that were not read, or are broken, are not
    there. Where all were read, the broken ones do not count.

    Args:
        config: names the data in errors.
        part: what was read.
        labels: (n,) int64, the classes of all images, as told before.
        wanted: (m,) int64, the numbers of those that were to be read; None = all.

    Raises:
        DataError: an image has another class than was told.
    """
    if labels is None or wanted is None:
        return part.images, part.labels
    numbers = wanted[part.places]
    if not torch.equal(part.labels, labels[numbers]):
        refuse(config, "has images of other classes than it tells beforehand")
    images = part.images
    rows = images if isinstance(images, Rows) else Rows(images, torch.arange(len(images)))
    places = torch.full((len(labels),), -1)
    places[numbers] = rows.places
    return Rows(rows.store, places), labels


def _check_labels(
    config: DataConfig, classes: Sequence[str], train: Tensor, test: Tensor | None = None
) -> None:
    """Refuse labels beyond the classes, and training images of one class."""
    for labels in (train,) if test is None else (train, test):
        if (largest := int(labels.max())) >= len(classes):
            refuse(config, f"label {largest} where the largest is {len(classes) - 1}")
    if len(train.unique()) < 2:
        refuse(config, "has training images of 1 class, and two are needed")


def _read_part(
    config: DataConfig,
    data: Any,
    number: int,
    image_hw: ImageHW,
    teller: Teller,
    wanted: Tensor | None = None,
) -> Part:
    """The training images (`number` 0) or the test images (1); all of them, or those of the numbers
    `wanted`."""
    if config.name != TIMM:
        return _read_all(config, data, image_hw)
    numbers = None if wanted is None else wanted.tolist()
    part = _kept(config, data, number, image_hw, teller, numbers)
    if is_in_turn(data):
        lines = left_out(config, data, len(part.labels) + len(part.skipped))
        return replace(part, skipped=part.skipped + lines)
    return part


def _kept(
    config: DataConfig,
    data: Any,
    number: int,
    image_hw: ImageHW,
    teller: Teller,
    wanted: Sequence[int] | None,
) -> Part:
    """Images of timm's in the cache, or in memory where that cannot be."""
    place = home()
    if place is None:
        return _read_all(config, data, image_hw, wanted)
    key = key_of(config, data, number)
    if key is None:
        why = "nothing tells whether it has changed"
        teller.notice(f"{name_of(config)}: is decoded at each start and held in memory: {why}")
        return _read_all(config, data, image_hw, wanted)
    if is_in_turn(data):
        return read_in_turn(place, key, config, data, image_hw, teller)
    return read_kept(place, key, config, data, image_hw, teller, wanted)


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
        self._places, self._digests = list[int](), bytearray()

    def add(self, place: int, item: Item) -> None:
        pixels, label = item
        if not self._labels:
            self._channels = len(pixels)
            check_images_fit(self._config, self._number, len(pixels), self._image_hw)
        refuse_channels(self._config, len(self._labels), item, self._channels)
        self._digests += digest_of(item)
        self._labels.append(label)
        self._places.append(place)
        self._last.append(resized(pixels, self._image_hw))
        if len(self._last) == _CHUNK:
            held = len(self._labels)  # which are copied once, when all have come
            check_images_fit(self._config, held, self._channels, self._image_hw, copies=1)
            self._parts.append(torch.stack(self._last))
            self._last = []

    def all(self, skipped: Iterable[BrokenImage]) -> Part:
        last = [torch.stack(self._last)] if self._last else []
        images, labels = torch.cat([*self._parts, *last]), torch.tensor(self._labels)
        digest = total_digest(bytes(self._digests))
        places = torch.tensor(self._places)
        return Part(images, labels, places, digest, tuple(map(str, skipped)))


def _read_all(
    config: DataConfig, data: Any, image_hw: ImageHW, wanted: Sequence[int] | None = None
) -> Part:
    """Every image and its class, or those of the numbers `wanted`, in memory."""
    told = told_length(data) if wanted is None else len(wanted)
    gathered, broken, number = _Gathered(config, image_hw, told), list[BrokenImage](), 0
    with without_warnings():
        for item in items(config, data, wanted):
            if isinstance(item, BrokenImage):
                broken.append(item)
            else:
                gathered.add(number, item)
            number += 1
    refuse_many(broken, number)
    if not number:
        refuse(config, "gives a data set without images")
    return gathered.all(broken)


def _classes(config: DataConfig, train: Any, labels: Tensor | None) -> tuple[str, ...]:
    """The names in `classes`, as torchvision's data sets have them, or numbers."""
    given = _names(train)
    if given:
        return tuple(map(str, given))
    assert labels is not None
    return tuple(map(str, range(int(labels.max()) + 1)))


def _names(data: Any) -> Any:
    """`classes` of a data set; of a `Subset` of torch without them, those of the whole."""
    while not hasattr(data, "classes") and isinstance(data, Subset):
        data = data.dataset
    return getattr(data, "classes", None)
