"""Data sets of other packages in the cache of decoded images, as folders are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.data.build import announce, complete
from vitnas.data.decode import BrokenImage, refuse_many, without_warnings
from vitnas.data.imageset import ImageSet, SetFacts, set_of_items
from vitnas.data.items import (
    Item,
    digest_of,
    hw_of,
    item_of,
    items,
    refuse_channels,
    resized,
    total_digest,
)
from vitnas.data.rows import Pixels, Rows
from vitnas.data.shard import ShardFacts, write_shard
from vitnas.data.shards import Shards
from vitnas.data.source import ImageHW
from vitnas.data.telling import SILENT, Teller
from vitnas.data.timm_images import Read
from vitnas.data.timm_sets import origin_of


@dataclass(frozen=True)
class Part:
    """The images of a split that can be read.

    Attributes:
        images: (n, C, H, W) uint8.
        labels: (n,) int64, their classes.
        places: (n,) int64, the place of each among the images that were to be read.
        digest: sixteen hex digits of all images as they came and their classes.
        skipped: which others cannot be read, and why.
    """

    images: Pixels
    labels: Tensor
    places: Tensor
    digest: str
    skipped: tuple[str, ...] = ()


def read_kept(
    home: Path,
    key: str,
    config: DataConfig,
    data: Any,
    image_hw: ImageHW,
    teller: Teller = SILENT,
    wanted: Sequence[int] | None = None,
) -> Part:
    """The images of `data`, in the cache, where they are put if they are not.

    Those of other numbers are another set.

    Args:
        home: the folder of the sets.
        key: tells one state of the data from another.
        config: names the data in errors.
        data: a data set whose items have numbers.
        image_hw: (H, W) in pixels that images are brought to.
        teller: told what will be decoded, and how far it is.
        wanted: the numbers of those that are read; None = all.

    Raises:
        DataError: an item is no image with a class, more than 1 % of them are broken, or there is
            no room.
    """
    with without_warnings():
        numbers = range(len(data)) if wanted is None else wanted
        channels = _channels(config, data, numbers)
        facts = SetFacts(
            root=origin_of(config), image_hw=image_hw, number=len(numbers), channels=channels
        )
        told = key if wanted is None else f"{key}\0{json.dumps(list(wanted))}"
        images = set_of_items(home, told, facts)
        origin = _Items(images, config, data, numbers)
        announce([origin], teller)
        return part_of(images, complete(origin, teller))


def part_of(images: ImageSet, found: Sequence[ShardFacts]) -> Part:
    """The images of a set that is complete, of which `found` is known.

    Raises:
        DataError: more than 1 % of them are broken.
    """
    number = images.facts.number
    labels = torch.from_numpy(np.concatenate([known.labels for known in found]))
    digests = np.concatenate([known.digests for known in found])
    broken = {
        images.span(shard)[number]: reason
        for shard, known in enumerate(found)
        for number, reason in known.broken.items()
    }
    refuse_many(list(broken.values()), number)
    sound = torch.ones(number, dtype=torch.bool)
    sound[list(broken)] = False
    places = sound.nonzero().squeeze(1)
    rows = Rows(Shards(images, found), places)
    digest = total_digest(digests[sound.numpy()].tobytes())
    return Part(rows, labels[sound], places, digest, tuple(broken.values()))


@dataclass(frozen=True)
class _Items:
    """Reads the images of a set from a data set; see `Origin`.

    Attributes:
        images: the set.
        config: names the data in errors.
        data: where they are read from.
        numbers: of each image of the set, in `data`.
    """

    images: ImageSet
    config: DataConfig
    data: Any
    numbers: Sequence[int]

    def is_readable(self, number: int) -> bool:
        return not isinstance(self._item(number), BrokenImage)

    def decode(self, number: int) -> ImageHW | None:
        item = self._item(number)
        return None if isinstance(item, BrokenImage) else hw_of(item)

    def kinds(self, number: int) -> tuple[str, ...]:
        data = self.data  # others hand on what they have converted themselves
        return data.kinds(self.numbers[number]) if isinstance(data, Read) else ()

    def write(self, shards: Sequence[int]) -> Iterator[int]:
        for shard in shards:
            span = self.images.span(shard)
            numbers = self.numbers[span.start : span.stop]
            each = items(self.config, self.data, numbers)
            yield write_items(self.images, shard, each, self.config, numbers)

    def _item(self, number: int) -> Item | BrokenImage:
        return item_of(self.config, self.data, self.numbers[number])


def write_items(
    images: ImageSet,
    shard: int,
    each: Iterable[Item | BrokenImage],
    config: DataConfig,
    numbers: Sequence[int],
) -> int:
    """Write a shard of the images that `each` gives, one after the other; how many these are.

    Args:
        images: the set.
        shard: its number.
        each: gives the images, at most as many as the shard has.
        config: names the data in errors.
        numbers: of the shard's images in the data, for errors.

    Raises:
        DataError: one has other channels than the first one of the set.
        OSError: it cannot be written.
    """
    (most, *shape), number = images.shape(shard), 0
    pixels, broken = np.zeros((most, *shape), np.uint8), dict[int, str]()
    labels, digests = np.zeros(most, np.int64), np.zeros((most, 16), np.uint8)
    for index, item in enumerate(each):
        number += 1
        if isinstance(item, BrokenImage):
            broken[index] = str(item)
            continue
        refuse_channels(config, numbers[index], item, images.facts.channels)
        pixels[index] = resized(item[0], images.facts.image_hw).numpy()
        labels[index] = item[1]
        digests[index] = np.frombuffer(digest_of(item), np.uint8)
    if number:
        told, place = (labels[:number], digests[:number]), images.place(shard)
        write_shard(place, pixels[:number], broken, labels=told[0], digests=told[1])
    return number


def _channels(config: DataConfig, data: Any, numbers: Sequence[int]) -> int:
    """Of the first image of these numbers that can be read."""
    each = (item_of(config, data, number) for number in numbers)
    return next((len(item[0]) for item in each if not isinstance(item, BrokenImage)), 3)
