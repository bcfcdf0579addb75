"""Fashion-MNIST: four idx files, plain or packed by gzip."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.data.place import damaged, root_of
from vitnas.data.source import DataSource, ImageHW, source_of
from vitnas.files import open_file

CLASSES = (
    *("t-shirt", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle-boot"),
)
_MOST_BYTES = 1 << 30


def read(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """The images of the four files."""
    return source_of(config, image_hw, _pair(config, "train"), _pair(config, "t10k"), CLASSES)


def _pair(config: DataConfig, part: str) -> tuple[Tensor, Tensor]:
    root = root_of(config)
    images = _read_idx(config, root / f"{part}-images-idx3-ubyte", 3)
    labels = _read_idx(config, root / f"{part}-labels-idx1-ubyte", 1)
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels.astype(np.int64))


def _read_idx(config: DataConfig, path: Path, dims: int) -> npt.NDArray[np.uint8]:
    """An idx file of unsigned bytes with `dims` axes, plain or as `.gz`.

    At most as much is read as the header says, and at most 1 GiB: a small `.gz` can unpack to very
    much.
    """
    packed = path.with_name(path.name + ".gz")
    if not path.is_file() and packed.is_file():
        path = packed
    try:
        with open_file(path) as file:
            return _unpack(config, path, dims, file)
    except FileNotFoundError:
        damaged(config, path, "no such file")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        damaged(config, path, f"cannot be read ({reason})")


def _unpack(config: DataConfig, path: Path, dims: int, file: BinaryIO) -> npt.NDArray[np.uint8]:
    if path.suffix == ".gz":
        file = cast(BinaryIO, gzip.GzipFile(fileobj=file))
    header = file.read(4 + 4 * dims)
    if len(header) < 4 + 4 * dims or header[:4] != bytes((0, 0, 8, dims)):
        damaged(config, path, f"not an idx file of unsigned bytes with {dims} axes")
    shape = tuple(np.frombuffer(header, dtype=">u4", offset=4).tolist())
    size = math.prod(shape)
    content = file.read(min(size, _MOST_BYTES) + 1)
    if len(content) != size:
        sizes, held = " x ".join(map(str, shape)), len(content) if len(content) < size else "more"
        damaged(config, path, f"its header says {sizes} bytes and it holds {held}")
    return np.array(np.frombuffer(content, dtype=np.uint8).reshape(shape))
