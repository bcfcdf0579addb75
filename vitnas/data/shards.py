"""Decoded images of a set on disk, indexed as a tensor; only what is asked for is read."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vitnas.data.imageset import ImageSet
from vitnas.data.shard import ShardFacts, offset_of, read_facts
from vitnas.errors import DataError


class OfSet:
    """What looks like the tensor (n, C, H, W) uint8 of a set's images.

    Attributes:
        images: the set.
    """

    images: ImageSet

    def __len__(self) -> int:
        return self.images.facts.number

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self), self.images.facts.channels, *self.images.facts.image_hw))

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")


class Shards(OfSet):
    """(n, C, H, W) uint8 on disk, indexed by numbers of images.

    The files are mapped into memory, so that all processes of a machine share one copy of what they
    read. What is pickled is where they are. As long as an object lives, its set is not deleted.

    Args:
        images: a set that is complete.
        facts: what is known of each shard; else it is read where it is needed.

    Raises:
        DataError: it is not there.
    """

    def __init__(self, images: ImageSet, facts: Sequence[ShardFacts] = ()) -> None:
        self.images, self._facts = images, facts
        self._maps: dict[int, npt.NDArray[np.uint8]] = {}
        try:
            weakref.finalize(self, os.close, images.hold())
        except OSError:
            raise self._gone() from None

    def __reduce__(self) -> tuple[Any, ...]:
        return Shards, (self.images,)

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """Pixels (k, C, H, W), in memory."""
        result = torch.empty(len(numbers), *self.shape[1:], dtype=torch.uint8)
        rows, size = result.numpy(), self.images.per_shard
        for row, number in enumerate(numbers.tolist()):
            shard, inside = divmod(number, size)
            pixels = self._maps.get(shard)
            rows[row] = (self._map(shard) if pixels is None else pixels)[inside]
        return result

    def sums(self, numbers: Tensor) -> Tensor:
        """(2, C) float64: of the bytes of each channel and of their squares; exact."""
        size = self.images.per_shard
        shards, total = numbers.cpu() // size, torch.zeros(2, self.shape[1], dtype=torch.float64)
        for shard in shards.unique().tolist():
            inside = numbers.cpu()[shards == shard] - shard * size
            total += torch.from_numpy(self._known(shard).sums)[inside].sum(dim=0)
        return total

    def _known(self, shard: int) -> ShardFacts:
        if self._facts:
            return self._facts[shard]
        facts = read_facts(self.images.place(shard), self.images.shape(shard)[0])
        if facts is None:
            raise self._gone()
        return facts

    def _map(self, shard: int) -> npt.NDArray[np.uint8]:
        """Its pixels, mapped by torch, which keeps no file open as numpy's maps do."""
        place, shape = self.images.place(shard), self.images.shape(shard)
        start = offset_of(place, shape)
        if start is None:
            raise self._gone()
        file, size = str(place.with_suffix(".npy")), torch.Size(shape).numel()
        whole = torch.from_file(file, shared=False, size=start + size, dtype=torch.uint8)
        self._maps[shard] = whole[start:].view(shape).numpy()
        return self._maps[shard]

    def _gone(self) -> DataError:
        return DataError(f"{self.images.folder}: decoded images are gone; start again")
