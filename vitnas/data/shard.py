"""A shard: some decoded images of a set on disk, in two files that appear whole or not at all.

`00007.npy` holds the pixels. `00007.npz` is written after it: what was found while decoding. Its
time is when the pixels were last compared with their checksum.
"""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from vitnas.data.decode import BrokenImage, fitted, read_rgb, without_warnings
from vitnas.files import open_file, write_bytes

_PARSING = Lock()
"""Held while numpy parses a header. Several threads read shards, and Python 3.11 before 3.11.8
raises SystemError where garbage collection lets two of them parse (python/cpython, gh-106905)."""
_AT_ONCE = 1 << 17  # bytes that are summed at a time: they stay in the processor's cache


@dataclass(frozen=True)
class ShardFacts:
    """What is known of a shard without its pixels.

    Attributes:
        sums: (m, 2, C) float64, of the bytes of each image and channel and of their squares; exact.
        broken: why an image could not be read, by its number in the shard; its pixels are zero.
        checksum: CRC-32 of the pixels.
        labels: (m,) int64, the classes, where only reading an image tells its class.
        digests: (m, 16) uint8, of the images as they came and their classes; there with `labels`.
    """

    sums: npt.NDArray[np.float64]
    broken: dict[int, str]
    checksum: int
    labels: npt.NDArray[np.int64] | None = None
    digests: npt.NDArray[np.uint8] | None = None


def build_shard(place: Path, paths: Sequence[str], image_hw: tuple[int, int]) -> int:
    """Decode images and write their shard; the number of images.

    Args:
        place: its path without a suffix.
        paths: the image files.
        image_hw: (H, W) in pixels that they are brought to.

    Raises:
        OSError: it cannot be written.
    """
    write_shard(place, *decoded(paths, image_hw))
    return len(paths)


def write_shard(
    place: Path, pixels: npt.NDArray[np.uint8], broken: dict[int, str], **told: npt.NDArray[Any]
) -> None:
    """Write decoded images (m, C, H, W) and what was found; `told` are further `ShardFacts`.

    Raises:
        OSError: it cannot be written.
    """
    write_bytes(place.with_suffix(".npy"), _header(pixels), pixels.data.cast("B"))
    found: dict[str, Any] = {
        "sums": _sums(pixels),
        "broken": np.array(list(broken), dtype=np.int64),
        "reasons": np.array(list(broken.values()), dtype=np.str_),
        "checksum": np.array(zlib.crc32(pixels.data), dtype=np.int64),
        **told,
    }
    file = io.BytesIO()
    np.savez(file, **found)
    write_bytes(place.with_suffix(".npz"), file.getbuffer())


def decoded(
    paths: Sequence[str], image_hw: tuple[int, int]
) -> tuple[npt.NDArray[np.uint8], dict[int, str]]:
    """Images (m, 3, H, W), and why some could not be read, by number; their pixels are zero."""
    pixels = np.zeros((len(paths), 3, *image_hw), dtype=np.uint8)
    broken: dict[int, str] = {}
    with without_warnings():
        for index, path in enumerate(paths):
            try:
                pixels[index] = fitted(read_rgb(Path(path)), image_hw)
            except BrokenImage as error:
                broken[index] = error.reason
    return pixels, broken


def read_facts(place: Path, number: int) -> ShardFacts | None:
    """What is known of the shard of `number` images; None where it is missing or damaged."""
    try:
        with open_file(place.with_suffix(".npz")) as file:
            content = io.BytesIO(file.read())
        with _PARSING, np.load(content, allow_pickle=False) as found:
            sums, broken = found["sums"], found["broken"].tolist()
            reasons, checksum = found["reasons"].tolist(), int(found["checksum"])
            labels, digests = (found.get(x) for x in ("labels", "digests"))
    except Exception:  # zipfile and numpy raise many kinds for a damaged file
        return None
    if sums.shape[:2] != (number, 2) or sums.dtype != np.float64 or len(broken) != len(reasons):
        return None
    return ShardFacts(sums, dict(zip(broken, reasons, strict=True)), checksum, labels, digests)


def offset_of(place: Path, shape: tuple[int, ...]) -> int | None:
    """Where the pixels begin in their file; None where it does not hold pixels of this shape."""
    try:
        with open_file(place.with_suffix(".npy")) as file:
            if np.lib.format.read_magic(file) != (1, 0):
                return None
            with _PARSING:
                found = np.lib.format.read_array_header_1_0(file)
            start, end = file.tell(), os.fstat(file.fileno()).st_size
    except Exception:  # as for the facts
        return None
    is_right = found == (shape, False, np.dtype(np.uint8)) and end == start + int(np.prod(shape))
    return start if is_right else None


def is_fresh(place: Path) -> bool:
    """Whether the pixels are as old as when they were last compared with their checksum."""
    try:
        return _time(place, ".npy") <= _time(place, ".npz")
    except OSError:
        return False


def compared(place: Path) -> float:
    """When the pixels were last compared with their checksum, in seconds; 0 = never."""
    try:
        return _time(place, ".npz") / 1e9
    except OSError:
        return 0.0


def is_sound(place: Path, checksum: int, shape: tuple[int, ...]) -> bool:
    """Compare the pixels with their checksum; if they agree, note the time."""
    start = offset_of(place, shape)
    if start is None:
        return False
    try:
        pixels = np.memmap(place.with_suffix(".npy"), dtype=np.uint8, mode="r", offset=start)
        if zlib.crc32(pixels.data) != checksum:
            return False
    except (OSError, ValueError):
        return False
    with suppress(OSError):
        os.utime(place.with_suffix(".npz"))
    return True


def _time(place: Path, suffix: str) -> int:
    return place.with_suffix(suffix).stat().st_mtime_ns


def _header(pixels: npt.NDArray[np.uint8]) -> bytes:
    """What `numpy.save` writes before the pixels, which then need no copy in memory."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(pixels))
    return file.getvalue()


def _sums(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """In float64 every partial sum is a whole number below 2**53, so that nothing is rounded."""
    parts, step = [], max(1, _AT_ONCE // pixels[0].size)
    for start in range(0, len(pixels), step):
        values = (
            pixels[start : start + step]
            .reshape(-1, pixels.shape[1], pixels[0, 0].size)
            .astype(float)
        )
        parts.append(np.stack([values.sum(2), np.einsum("ncp,ncp->nc", values, values)], axis=1))
    return np.concatenate(parts)
