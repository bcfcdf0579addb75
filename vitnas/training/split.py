"""Images that train, that score or that test, as bytes on one device, with their classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vitnas.data.elsewhere import Elsewhere, Sender
from vitnas.data.rows import Pixels, Rows, batches_of, joined, taken, there
from vitnas.data.source import split_by_class


@dataclass(frozen=True)
class Split:
    """Images and their classes on one device.

    Attributes:
        pixels: (n, C, H, W) uint8; they need not all be there.
        y: (n,) int64, the class of each.
        mean, std: (C, 1, 1) float32 in units of a byte, 0 to 255; of the training images.
        taught: (n, classes) float32, what a teacher says of each image as it is, or None.
    """

    pixels: Pixels
    y: Tensor
    mean: Tensor
    std: Tensor
    taught: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def x(self) -> Tensor:
        """(n, C, H, W) uint8, all of the images in memory."""
        return self.pixels[:]

    def normalise(self, x: Tensor) -> Tensor:
        """(B, C, H, W) uint8 -> float32 with the training images' mean 0 and deviation 1.

        The channels of a pixel lie side by side (`torch.channels_last`). Layers keep this layout,
        so pictures and tokens `(B, N, C)` are views of each other, and most kernels are faster.
        """
        pixels = x.sub(self.mean).div_(self.std)  # first: three numbers in a row are slow
        return pixels.clone(memory_format=torch.channels_last)

    def subset(self, fraction: float, seed: int) -> Split:
        """The same share of each class, 0 < `fraction` <= 1, drawn with `seed`; all of it for 1.

        The draw is from all images. What is drawn and not there (a broken file) is left out.
        """
        if fraction >= 1:
            return self
        _, kept = split_by_class(self.y.cpu(), fraction, seed)
        return self.of(self.there(kept.to(self.y.device)))

    def some(self, number: int, seed: int = 0) -> Split:
        """So many images at most, drawn with `seed`, in the order of the draw."""
        draw = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        return self.of(self.there(draw.to(self.pixels.device))[:number])

    def there(self, index: Tensor) -> Tensor:
        """Those of the indices whose images were read, in their order."""
        return there(self.pixels, index)

    def batches(self, size: int, which: slice = slice(None)) -> Iterator[tuple[Tensor, Tensor]]:
        """All images in order with their classes, `size` at a time; of these batches `which`."""
        parts = [slice(start, start + size) for start in range(0, len(self), size)][which]
        for part, x in zip(parts, self.pixels_of(parts), strict=True):
            yield x, self.y[part]

    def pixels_of(self, each: Iterable[Tensor | slice]) -> Iterator[Tensor]:
        """The pixels of each index, in their order; where they come from the host, the next ones
        are on their way while the last ones are used."""
        return batches_of(self.pixels, each)

    def of(self, index: Tensor) -> Split:
        """The images of these indices, or where a mask is true."""
        taught = None if self.taught is None else self.taught[index]
        return replace(self, pixels=taken(self.pixels, index), y=self.y[index], taught=taught)

    def __add__(self, other: Split) -> Split:
        """These images, then those of `other`."""
        taught = None
        if self.taught is not None and other.taught is not None:
            taught = torch.cat([self.taught, other.taught])
        return replace(
            self,
            pixels=joined(self.pixels, other.pixels),
            y=torch.cat([self.y, other.y]),
            taught=taught,
        )

    def in_memory(self) -> Split:
        """The same images, none of them on disk."""
        pixels = self.pixels
        return self if isinstance(pixels, Tensor) else replace(self, pixels=pixels.in_memory())

    def sent(self, by: Sender, known: dict[int, Elsewhere]) -> Split:
        """As `Rows.sent`."""
        pixels = self.pixels
        return self if isinstance(pixels, Tensor) else replace(self, pixels=pixels.sent(by, known))

    def fetch(self) -> None:
        """As `Rows.fetch`."""
        if isinstance(self.pixels, Rows):
            self.pixels.fetch()

    @property
    def size(self) -> int:
        """Bytes of the images that are there."""
        return self.pixels.numel() if isinstance(self.pixels, Tensor) else self.pixels.size

    @property
    def numbers_device(self) -> torch.device:
        """Where numbers of images are looked up."""
        return self.pixels.device if isinstance(self.pixels, Tensor) else self.pixels.places.device

    def streamed(self, device: str | torch.device) -> Split:
        """The same images, of which each batch comes to `device` when it is asked for."""
        pixels = self.pixels
        rows = Rows(pixels, torch.arange(len(pixels))) if isinstance(pixels, Tensor) else pixels
        return self._with(rows.streamed(device), device)

    def to(self, device: str | torch.device) -> Split:
        """The same images on `device`; no copy if they are there already."""
        return self._with(self.pixels.to(device), device)

    def _with(self, pixels: Pixels, device: str | torch.device) -> Split:
        """The same with these pixels, and all else on `device`."""
        y, mean, std = (part.to(device) for part in (self.y, self.mean, self.std))
        taught = None if self.taught is None else self.taught.to(device)
        return Split(pixels, y, mean, std, taught)
