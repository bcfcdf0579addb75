"""Images by number, of which only those that a run uses were read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from vitnas.data.ahead import made_ahead
from vitnas.data.elsewhere import Elsewhere, Sender
from vitnas.data.shards import Shards
from vitnas.memory import check_memory


@dataclass(frozen=True)
class Rows:
    """n images, some of which are there; indexed as a tensor (n, C, H, W) uint8 where they are.

    So labels, and whatever is drawn from them, are those of the whole data set.

    Attributes:
        store: (m, C, H, W) uint8, the images that were read, in memory or on disk. Where they are
            streamed to a device, `places` stay on the CPU.
        places: (n,) int64, the number of each in `store`; -1 = not there.
    """

    store: Tensor | Shards | Streamed | Elsewhere
    places: Tensor

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Tensor | slice) -> Tensor:
        """Pixels (k, C, H, W).

        Raises:
            IndexError: one of them is not there; seen on the CPU alone.
        """
        return self.store[self._at(index)]

    def batches(self, each: Iterable[Tensor | slice]) -> Iterator[Tensor]:
        """The pixels of each index, in their order; where they are streamed, the next ones come to
        the device while the last ones are used.

        Raises:
            IndexError: as of one index.
        """
        places = map(self._at, each)
        store = self.store
        return (
            store.batches(places) if isinstance(store, Streamed) else map(store.__getitem__, places)
        )

    def _at(self, index: Tensor | slice) -> Tensor:
        """Where the images of an index are in the store."""
        places = self.places[_beside(self.places, index)]
        is_seen = places.device.type == "cpu"  # elsewhere, looking would wait for the device
        if is_seen and len(places) and int(places.min()) < 0:
            raise IndexError("an image is asked for that was not read")
        return places

    @property
    def shape(self) -> tuple[int, ...]:
        return len(self), *self.store.shape[1:]

    @property
    def device(self) -> torch.device:
        return self.store.device

    def of(self, index: Tensor) -> Rows:
        """Those of these indices, or where a mask is true; no pixel is copied."""
        return Rows(self.store, self.places[_beside(self.places, index)])

    def to(self, device: str | torch.device) -> Rows:
        """The same images, those that are there on `device`; no copy if they are already."""
        return self if _is_at(self.device, device) else self._copied(device)

    def streamed(self, device: str | torch.device) -> Rows:
        """The same images on the host, of which each batch comes to `device`."""
        return Rows(Streamed(_host(self.store), device), self.places.cpu())

    @property
    def size(self) -> int:
        """Bytes of the images that are there."""
        return int((self.places >= 0).sum()) * math.prod(self.shape[1:])

    def __add__(self, other: Rows) -> Rows:
        """These images, then those of `other`; a store in memory is copied if they differ."""
        first, second = _host(self.store), _host(other.store)
        if first is second:
            return Rows(self.store, torch.cat([self.places, other.places]))
        assert isinstance(first, Tensor)
        assert isinstance(second, Tensor)
        later = torch.where(other.places < 0, -1, other.places + len(first))
        both = Rows(torch.cat([first, second]), torch.cat([self.places, later]))
        return both.streamed(self.device) if isinstance(self.store, Streamed) else both

    def in_memory(self) -> Rows:
        """The same images, none of them on disk.

        Raises:
            MemoryLimitError: they do not fit.
        """
        if isinstance(self.store, Tensor):
            return self
        number = int((self.places >= 0).sum())
        needed = number * self.store.shape[1:].numel()
        check_memory(needed, f"{number:,} images", "take a smaller img_size or train_fraction")
        return self._copied(self.device)

    def sent(self, by: Sender, known: dict[int, Elsewhere]) -> Rows:
        """The same images for another machine, which fetches those on disk when it needs them.

        Args:
            by: hands them out there.
            known: what parts with the same store have become, which is added to.
        """
        store = self.store
        if not isinstance(store, Shards):
            return self
        if id(store) not in known:
            by.hold(store.images)
            known[id(store)] = Elsewhere(store.images, by)
        return Rows(known[id(store)], self.places)

    def fetch(self) -> None:
        """Bring the images of another machine here now, and not when the first is needed."""
        if isinstance(self.store, Elsewhere):
            self.store.here()

    def _copied(self, device: str | torch.device) -> Rows:
        there = self.places >= 0
        places = torch.where(there, there.cumsum(0) - 1, -1)
        return Rows(_host(self.store)[self.places[there]].to(device), places.to(device))


class Streamed:
    """Images on the host, indexed as a tensor on a CUDA device that is too small for them.

    A batch is pinned and copied without waiting. Of several, a thread reads and pins the next one
    while one is used, and a stream of its own copies it.

    Args:
        host: (m, C, H, W) uint8, in memory or on disk.
        device: where batches go.
    """

    def __init__(self, host: Tensor | Shards, device: str | torch.device) -> None:
        self.host, self.device = host, torch.device(device)

    def __len__(self) -> int:
        return len(self.host)

    @property
    def shape(self) -> torch.Size:
        return self.host.shape

    def __getitem__(self, numbers: Tensor) -> Tensor:
        """Pixels (k, C, H, W) on the device."""
        batch = self.host[numbers]
        pinned = batch.pin_memory() if self.device.type == "cuda" else batch
        return pinned.to(self.device, non_blocking=True)

    def batches(self, each: Iterable[Tensor]) -> Iterator[Tensor]:
        """As one index after the other; two batches at most are ready or coming."""
        if self.device.type != "cuda":
            yield from made_ahead(self.__getitem__, each)
            return
        copying = torch.cuda.Stream(self.device)

        def copied(numbers: Tensor) -> tuple[Tensor, torch.cuda.Event]:
            with torch.cuda.stream(copying):
                batch, done = self[numbers], torch.cuda.Event()
                done.record(copying)
            return batch, done

        for batch, done in made_ahead(copied, each):
            now = torch.cuda.current_stream(self.device)
            now.wait_event(done)
            batch.record_stream(now)  # else its memory could be reused while it is read
            yield batch


Pixels = Tensor | Rows
"""Images, (n, C, H, W) uint8."""


def there(images: Pixels, index: Tensor) -> Tensor:
    """Those of the indices whose images are there, in their order."""
    if not isinstance(images, Rows):
        return index
    return index[(images.places[_beside(images.places, index)] >= 0).to(index.device)]


def batches_of(images: Pixels, each: Iterable[Tensor | slice]) -> Iterator[Tensor]:
    """The pixels of each index, in their order; see `Rows.batches`."""
    if isinstance(images, Rows):
        return images.batches(each)
    return (images[i] if isinstance(i, slice) else images.index_select(0, i) for i in each)


def taken(images: Pixels, index: Tensor) -> Pixels:
    """The images of these indices, or where a mask is true."""
    return images.of(index) if isinstance(images, Rows) else images[index]


def joined(first: Pixels, second: Pixels) -> Pixels:
    """The images of `first`, then those of `second`, which are of the same kind."""
    if isinstance(first, Rows) and isinstance(second, Rows):
        return first + second
    assert isinstance(first, Tensor)
    assert isinstance(second, Tensor)
    return torch.cat([first, second])


def channel_sums(images: Pixels) -> tuple[Tensor, Tensor]:
    """Sum of the bytes of each channel and of their squares, (C,) float64; both are exact."""
    if isinstance(images, Rows) and isinstance(images.store, Shards):
        total, squares = images.store.sums(images.places)
        return total, squares
    total = torch.zeros(images.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    size = max(1, _PIXELS // max(1, images.shape[2] * images.shape[3]))
    for start in range(0, len(images), size):
        values = images[start : start + size].double()
        total += values.sum(dim=(0, 2, 3)).cpu()
        squares += values.square().sum(dim=(0, 2, 3)).cpu()
    return total, squares


_PIXELS = 1 << 22  # of one channel, that are summed at a time


def _beside(places: Tensor, index: Tensor | slice) -> Tensor | slice:
    """`index` on the device of `places`."""
    return index if isinstance(index, slice) else index.to(places.device)


def _is_at(there: torch.device, device: str | torch.device) -> bool:
    """Whether a device is `device`; `cuda` without a number is each CUDA device."""
    wanted = torch.device(device)
    return wanted.type == there.type and wanted.index in (None, there.index)


def _host(store: Tensor | Shards | Streamed | Elsewhere) -> Tensor | Shards:
    """The images themselves, where a store only hands them on."""
    if isinstance(store, Elsewhere):
        return store.here()
    return store.host if isinstance(store, Streamed) else store
