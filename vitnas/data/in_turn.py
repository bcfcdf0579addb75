"""Data sets that can only be read from beginning to end, in the cache of decoded images.

How many images come is known at the end alone. Then the set's facts tell it, and the set counts.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vitnas.config.data import DataConfig
from vitnas.data.build import (
    SAMPLE,
    alone,
    complete,
    foretell,
    fresh,
    tell_converted,
    tell_enlarged,
)
from vitnas.data.cache import make_room, plain_errors
from vitnas.data.decode import BrokenImage, without_warnings
from vitnas.data.imageset import FACTS_FILE, ImageSet, SetFacts, set_of_items
from vitnas.data.items import Item, hw_of, items, refuse
from vitnas.data.kept import Part, part_of, write_items
from vitnas.data.source import ImageHW
from vitnas.data.telling import SILENT, Bar, Teller
from vitnas.data.timm_sets import origin_of
from vitnas.files import read_bytes

_UNTOLD = 1 << 20  # images that are expected where nobody says how many
_ENDLESS = 1 << 40  # more than come
_MOST_BYTES = 1 << 16


def read_in_turn(
    home: Path, key: str, config: DataConfig, data: Any, image_hw: ImageHW, teller: Teller = SILENT
) -> Part:
    """The images of `data`, in the cache, where they are put if they are not.

    A start after a kill reads from the beginning again, and writes only the parts that are missing.

    Args:
        home: the folder of the sets.
        key: tells one state of the data from another.
        config: names the data in errors.
        data: an iterable data set of RGB images; its length, where it has one, is an estimate.
        image_hw: (H, W) in pixels that images are brought to.
        teller: told what will be decoded, and how far it is.

    Raises:
        DataError: an item is no image with a class, they are others than before, or there is no
            room.
    """
    told = told_length(data)
    facts = SetFacts(root=origin_of(config), image_hw=image_hw, number=told or _UNTOLD)
    images = set_of_items(home, f"in turn, upright\0{key}", facts)
    facts = images.facts.model_copy(update={"number": 0, "per_shard": images.per_shard})
    images = replace(images, facts=facts)
    with without_warnings():
        whole = _as_told(images)
        if whole is None:
            with plain_errors(home), alone(images, teller):
                whole = _as_told(images)  # another process may have read them meanwhile
                if whole is None:
                    make_room(home, told * images.bytes_of_image, images)
                    number = _InTurn(_with(images, _ENDLESS), config, data).read_all(told, teller)
                    whole = _with(images, number)
                    whole.write_facts()
        return part_of(whole, complete(_InTurn(whole, config, data), teller))


def told_length(data: Any) -> int:
    """How many images a data set says that it has; 0 where it does not say."""
    return len(data) if hasattr(data, "__len__") else 0


@dataclass(frozen=True)
class _InTurn:
    """Reads the images of a set in their order; see `Origin`."""

    images: ImageSet
    config: DataConfig
    data: Any

    def is_readable(self, number: int) -> bool:
        """No: one that is broken stays so until the data change, which is another set."""
        return False

    def decode(self, number: int) -> ImageHW | None:
        """Decode all up to this one; see `Origin`."""
        item = next(islice(self._items(), number, None), None)
        return None if item is None or isinstance(item, BrokenImage) else hw_of(item)

    def kinds(self, number: int) -> tuple[str, ...]:
        """Of one of the first images, once these have come; see `Origin`."""
        known: Sequence[tuple[str, ...]] = getattr(self.data, "kinds", ())
        return known[number] if number < len(known) else ()

    def write(self, shards: Sequence[int]) -> Iterator[int]:
        """Read again as far as these shards go, and write them."""
        images, wanted = self.images, set(shards)
        with closing(self._items()) as each:
            for shard in range(max(wanted) + 1):
                due = islice(each, len(images.span(shard)))
                found = self._take(shard, due, is_written=shard in wanted)
                if found != len(images.span(shard)):
                    (images.folder / FACTS_FILE).unlink(missing_ok=True)  # may be what is wrong
                    refuse(self.config, "gives other images than before; start again")
                if shard in wanted:
                    yield found

    def read_all(self, told: int, teller: Teller) -> int:
        """Read to the end and write the shards that are missing; the number of images.

        Args:
            told: how many are expected; 0 = not known.
            teller: see `read_in_turn`.
        """
        size, number, bar = self.images.per_shard, 0, Bar(teller.doing, told or _UNTOLD)
        with closing(self._timed(told, teller)) as each:
            for shard in count():
                is_there = fresh(self, shard) is not None
                found = self._take(shard, islice(each, size), is_written=not is_there)
                number += found
                if told > number:
                    bar(number)
                if found < size:
                    break
        if not number:
            refuse(self.config, "gives a data set without images")
        return number

    def _take(self, shard: int, due: Iterator[Item | BrokenImage], *, is_written: bool) -> int:
        """Write a shard, or only pass over its images; their number."""
        if is_written:
            return write_items(self.images, shard, due, self.config, self.images.span(shard))
        return sum(1 for _ in due)

    def _items(self) -> Generator[Item | BrokenImage, None, None]:
        yield from items(self.config, self.data)

    def _timed(self, told: int, teller: Teller) -> Generator[Item | BrokenImage, None, None]:
        """The items; once some have come, it is told how long all will take, and whether these
        are enlarged, or converted."""
        started, sides = time.monotonic(), list[ImageHW]()
        for number, item in enumerate(self._items()):
            if number < SAMPLE:
                sides += [] if isinstance(item, BrokenImage) else [hw_of(item)]
            elif number == SAMPLE:
                seconds = (time.monotonic() - started) * told / SAMPLE
                foretell(self.images, told, seconds, teller)
                tell_enlarged(self.images, sides, teller)
                tell_converted(self.images, list(map(self.kinds, range(SAMPLE))), teller)
            yield item


def _with(images: ImageSet, number: int) -> ImageSet:
    return replace(images, facts=images.facts.model_copy(update={"number": number}))


def _as_told(images: ImageSet) -> ImageSet | None:
    """The set with the number of images that its facts on disk tell; None where it is not told."""
    try:
        told = read_bytes(images.folder / FACTS_FILE, _MOST_BYTES)
        facts = SetFacts.model_validate_json(told)
    except (OSError, ValidationError):
        return None
    is_whole = facts.number > 0 and facts.per_shard == images.per_shard
    return _with(images, facts.number) if is_whole else None
