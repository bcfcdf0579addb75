"""Decoded images in the cache of another machine, which come into this machine's own, in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from vitnas.data.build import complete
from vitnas.data.cache import home
from vitnas.data.imageset import ImageSet
from vitnas.data.shard import is_sound, read_facts
from vitnas.data.shards import OfSet, Shards
from vitnas.errors import DataError
from vitnas.files import read_bytes, write_bytes
from vitnas.memory import check_memory

Piece = tuple[bytes, bytes]
"""The two files of a shard: its pixels, and what is known of it."""
_MOST_BYTES = 1 << 30  # of a file; shards are far smaller


class Sender(Protocol):
    """Hands out the shards of a machine's sets, to other machines; it is pickled."""

    def hold(self, images: ImageSet) -> None:
        """Keep a set on the machine that has it from being deleted, as long as it is handed out.

        Raises:
            DataError: it is gone.
        """

    def pieces(self, images: ImageSet, shards: Sequence[int]) -> Iterator[Piece]:
        """These shards, one after the other.

        Args:
            images: the set where it is on the machine that has it.
            shards: their numbers.

        Raises:
            DataError: one is gone, or the machine does not answer.
        """


def read_piece(images: ImageSet, shard: int) -> Piece:
    """A shard as its machine reads it.

    Raises:
        DataError: it is gone.
    """
    place = images.place(shard)
    try:
        pixels, told = (read_bytes(place.with_suffix(x), _MOST_BYTES) for x in (".npy", ".npz"))
    except OSError:
        raise DataError(f"{images.folder}: decoded images are gone; start again") from None
    return pixels, told


class Elsewhere(OfSet):
    """(n, C, H, W) uint8 of another machine, indexed by numbers of images.

    The first use brings all shards into this machine's cache, unless they are there. One process
    does so, and the others wait for it and map the same files. Without a cache each process has all
    images in its memory.

    Args:
        images: the set where it is on the machine that has it.
        sender: hands out its shards.
    """

    def __init__(self, images: ImageSet, sender: Sender) -> None:
        self.images, self.sender = images, sender
        self._here: Tensor | Shards | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Elsewhere, (self.images, self.sender)

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """Pixels (k, C, H, W), in memory."""
        return self.here()[numbers]

    def here(self) -> Tensor | Shards:
        """The images on this machine.

        Raises:
            DataError: they do not come, or there is no room for them.
            MemoryLimitError: there is no cache here, and they do not fit into memory.
        """
        if self._here is None:
            place = home()
            self._here = self._in_memory() if place is None else self._in_cache(place)
        return self._here

    def _in_cache(self, place: Path) -> Shards:
        images = ImageSet(place / self.images.folder.name, self.images.facts)
        return Shards(images, complete(_Sent(images, self.images, self.sender)))

    def _in_memory(self) -> Tensor:
        size = len(self) * self.images.bytes_of_image
        check_memory(size, f"{len(self):,} images", "set $VITNAS_IMAGE_CACHE to a folder")
        result = torch.empty(self.shape, dtype=torch.uint8)
        shards = range(self.images.num_shards)
        for shard, (pixels, _) in zip(shards, self.sender.pieces(self.images, shards), strict=True):
            span, shape = self.images.span(shard), self.images.shape(shard)
            content = np.frombuffer(pixels, np.uint8)[-int(np.prod(shape)) :].reshape(shape)
            result.numpy()[span.start : span.stop] = content
        return result


@dataclass(frozen=True)
class _Sent:
    """Fetches the shards of a set from another machine; see `Origin`.

    Attributes:
        images: the set here.
        there: the set there.
        sender: hands out its shards.
    """

    images: ImageSet
    there: ImageSet
    sender: Sender

    def is_readable(self, number: int) -> bool:
        """No: what was broken there stays broken here."""
        return False

    def decode(self, number: int) -> None:
        """Nothing is decoded here; see `Origin`."""

    def kinds(self, number: int) -> tuple[str, ...]:
        """Nothing is converted here; see `Origin`."""
        return ()

    def write(self, shards: Sequence[int]) -> Iterator[int]:
        """See `Origin`."""
        for shard, piece in zip(shards, self.sender.pieces(self.there, shards), strict=True):
            place, shape = self.images.place(shard), self.images.shape(shard)
            for suffix, content in zip((".npy", ".npz"), piece, strict=True):
                write_bytes(place.with_suffix(suffix), content)
            facts = read_facts(place, shape[0])
            if facts is None or not is_sound(place, facts.checksum, shape):
                place.with_suffix(".npz").unlink(missing_ok=True)
                raise DataError(f"{place.with_suffix('.npy')}: was damaged on its way here")
            yield shape[0]
