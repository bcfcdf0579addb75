"""What a search will read of an image folder: told without reading an image, and without torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitnas.config.data import DataConfig
from vitnas.data.build import reading_text
from vitnas.data.cache import home, size_text
from vitnas.data.imageset import ImageFile
from vitnas.data.listing import list_folder
from vitnas.files import is_folder
from vitnas.words import plural

_CHANNELS = 3


@dataclass(frozen=True)
class ToRead:
    """Images that a search will read.

    Attributes:
        root: the folder.
        num_classes: that are used.
        num_images: of these classes, training, scoring and test images together.
        num_read: those that are read; with several folds and a share of the training images this
            is the most.
        sizes: (H, W) in pixels that they are brought to.
        home: the folder of the cache; None where they are held in memory.
    """

    root: str
    num_classes: int
    num_images: int
    num_read: int
    sizes: tuple[tuple[int, int], ...]
    home: Path | None

    def lines(self) -> list[str]:
        """What `vitnas space` prints: how many there are, and for each size what a search says."""
        found = [f"  images      {self.num_images:,} of {plural(self.num_classes, 'class')}"]
        for image_hw, size in zip(self.sizes, self.bytes_of_sizes, strict=True):
            text = f"{self.root}: {self.num_read:,} images in memory: {size_text(size)}"
            if self.home is not None:
                text = reading_text(self.root, self.num_read, image_hw, size, self.home)
            found.append(f"  to read     {text}")
        return found

    @property
    def bytes_of_sizes(self) -> list[int]:
        """What they take at each of the `sizes`."""
        return [self.num_read * _CHANNELS * height * width for height, width in self.sizes]

    def told(self) -> dict[str, Any]:
        """Plain values."""
        home = None if self.home is None else str(self.home)
        return asdict(self) | {"home": home, "bytes": self.bytes_of_sizes}


def reading_of(
    config: DataConfig, sizes: Sequence[tuple[int, int]], fraction: float
) -> ToRead | None:
    """What a search reads; None of other data than image folders, and where there is no folder.

    Args:
        config: which images, and which of them score.
        sizes: (H, W) in pixels that they are brought to.
        fraction: share of the training images that trainings use.

    Raises:
        DataError: see `list_folder`.
    """
    if config.name != "imagefolder" or config.folder is None or not is_folder(config.folder):
        return None
    folder = list_folder(config)
    others = len(folder.test) + len(folder.val or ())
    trained = _read_of(folder.train, config, fraction)
    return ToRead(
        str(folder.root.resolve()),
        len(folder.classes),
        len(folder.train) + others,
        trained + others,
        tuple(sizes),
        home(),
    )


def _read_of(files: Iterable[ImageFile], config: DataConfig, fraction: float) -> int:
    """How many training images are read: those held out of each class, and a share of the others;
    in several folds nearly all may be."""
    number = 0
    for there in Counter(file.number for file in files).values():
        held = round(there * config.val_fraction)
        is_all = fraction >= 1 or config.folds > 1
        number += there if is_all else held + round((there - held) * fraction)
    return number
