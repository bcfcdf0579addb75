"""Small sets of decoded images for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from vitnas.data import build
from vitnas.data.build import FilesOrigin, announce
from vitnas.data.imageset import ImageFile, ImageSet, set_of
from vitnas.data.shard import ShardFacts
from vitnas.data.telling import SILENT, Teller


def image_files(root: Path, number: int) -> list[ImageFile]:
    """Image files in `root`, each with pixels of its own."""
    root.mkdir(exist_ok=True)
    for index in range(number):
        colours = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 3 + index % 100
        Image.fromarray(colours).save(root / f"{index:04}.png")
    return [listed(path) for path in sorted(root.iterdir())]


def listed(path: Path) -> ImageFile:
    there = path.stat()
    return ImageFile(str(path), 0, there.st_size, there.st_mtime_ns)


def small_set(tmp_path: Path, number: int = 5) -> tuple[ImageSet, list[ImageFile]]:
    """A set that is not there yet, and its files."""
    files = image_files(tmp_path / "data", number)
    return set_of(tmp_path / "home", tmp_path / "data", files, (4, 4)), files


def complete(
    images: ImageSet, files: Sequence[ImageFile], teller: Teller = SILENT
) -> list[ShardFacts]:
    """Make the set complete."""
    origin = FilesOrigin(images, files)
    announce([origin], teller)
    return build.complete(origin, teller)


def flip(path: Path, offset: int = -1) -> None:
    """Change a byte of a file."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)
