"""Small data sets written to disk in the formats that the readers know."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode

from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig, save_config
from vitnas.training.data import load_data
from vitnas.training.images import Images


class Reads(TorchDispatchMode):
    """Counts the numbers that are read from tensors, for which a CUDA device is waited for."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def numpy_state() -> list[int]:
    """The state of numpy's global generator."""
    keys: list[int] = np.random.get_state(legacy=False)["state"]["key"].tolist()
    return keys


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, dtype=">u4").tobytes()
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as file:
        file.write(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def fashion_root(tmp_path: Path) -> Path:
    """40 training and 20 test images in idx files, the images packed, the labels plain."""
    rng = np.random.default_rng(0)
    for part, number in (("train", 40), ("t10k", 20)):
        images = rng.integers(0, 256, (number, 28, 28))
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", images)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte", np.arange(number) % 10)
    return tmp_path


def write_records(path: Path, number: int, label_bytes: int, classes: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    records = rng.integers(0, 256, (number, label_bytes + 3072), dtype=np.uint8)
    records[:, label_bytes - 1] = np.arange(number) % classes
    path.write_bytes(records.tobytes())
    return records


@pytest.fixture
def cifar10_root(tmp_path: Path) -> Path:
    for batch in range(1, 6):
        write_records(tmp_path / f"data_batch_{batch}.bin", 20, 1, 10)
    write_records(tmp_path / "test_batch.bin", 30, 1, 10)
    return tmp_path


@pytest.fixture
def cifar100_root(tmp_path: Path) -> Path:
    write_records(tmp_path / "train.bin", 200, 2, 100)
    write_records(tmp_path / "test.bin", 100, 2, 100)
    return tmp_path


def fill_folder(root: Path) -> None:
    """Three classes of a colour each; 5 training and 2 validation images, of unequal sizes."""
    colours = {"blue": (0, 0, 255), "green": (0, 255, 0), "red": (255, 0, 0)}
    for part, number in (("train", 5), ("val", 2)):
        for name, colour in colours.items():
            folder = root / part / name
            folder.mkdir(parents=True)
            for index in range(number):
                Image.new("RGB", (20 + index, 30), colour).save(folder / f"{index}.png")


@pytest.fixture
def folder_root(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def digits() -> Images:
    torch.set_num_threads(1)
    return load_data(DataConfig(), 8)


@pytest.fixture
def lrc(tiny_config: ModelConfig) -> ModelConfig:
    return ModelConfig.model_validate(tiny_config.model_dump() | {"residual": "lrc"})


@pytest.fixture
def model_file(lrc: ModelConfig, tmp_path: Path) -> Path:
    save_config(lrc, tmp_path / "net.yaml")
    return tmp_path / "net.yaml"
