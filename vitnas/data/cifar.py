"""CIFAR-10 and CIFAR-100 in their binary version: records of labels and 3 x 32 x 32 pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vitnas.config.data import DataConfig
from vitnas.data.place import damaged, root_of
from vitnas.data.source import DataSource, ImageHW, source_of
from vitnas.files import read_bytes

_MOST_BYTES = 1 << 30
_TEN = [f"data_batch_{number}.bin" for number in range(1, 6)]


def read_10(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """CIFAR-10: one label byte in each record."""
    return _read(config, image_hw, _TEN, "test_batch.bin", 1, "batches.meta.txt")


def read_100(config: DataConfig, image_hw: ImageHW) -> DataSource:
    """CIFAR-100: two label bytes a record; the second one is the class."""
    return _read(config, image_hw, ["train.bin"], "test.bin", 2, "fine_label_names.txt")


def _read(
    config: DataConfig,
    image_hw: ImageHW,
    train: Sequence[str],
    test: str,
    label_bytes: int,
    meta: str,
) -> DataSource:
    root = root_of(config)

    def joined(files: Sequence[str]) -> tuple[Tensor, Tensor]:
        read = [_records(config, root / name, label_bytes) for name in files]
        images, labels = (torch.cat(columns) for columns in zip(*read, strict=True))
        return images, labels

    names = _names(root / meta, config)
    return source_of(config, image_hw, joined(train), joined([test]), names)


def _records(config: DataConfig, path: Path, label_bytes: int) -> tuple[Tensor, Tensor]:
    size = label_bytes + 3072
    try:
        content = read_bytes(path, _MOST_BYTES)
    except FileNotFoundError:
        damaged(config, path, "no such file")
    except OSError as error:
        damaged(config, path, f"cannot be read ({error.strerror or error})")
    if not content or len(content) % size:
        damaged(config, path, f"{len(content)} bytes are not whole records of {size}")
    records = torch.from_numpy(np.frombuffer(content, dtype=np.uint8).reshape(-1, size).copy())
    return records[:, label_bytes:].reshape(-1, 3, 32, 32), records[:, label_bytes - 1].long()


def _names(path: Path, config: DataConfig) -> tuple[str, ...]:
    """The names in the archive's text file, or numbers where that is missing."""
    number = config.facts.num_classes or 0
    try:
        names = read_bytes(path, 1 << 20).decode("utf-8").split()
    except (OSError, UnicodeDecodeError):
        names = []
    return tuple(names) if len(names) == number else tuple(map(str, range(number)))
