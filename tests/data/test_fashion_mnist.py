"""idx files: read right, or refused in one line with the path."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.data.conftest import refusal
from vitnas.config.data import DataConfig
from vitnas.data.table import read_source


def _fashion(root: Path) -> DataConfig:
    return DataConfig(name="fashion_mnist", root=str(root))


def test_idx_files_are_read_plain_and_packed(fashion_root: Path) -> None:
    source = read_source(_fashion(fashion_root), (28, 28))
    packed = gzip.decompress((fashion_root / "train-images-idx3-ubyte.gz").read_bytes())
    assert source.train[0].shape == (40, 1, 28, 28)
    assert source.train[0][:].numpy().tobytes() == packed[16:]
    assert source.train[1].tolist() == [number % 10 for number in range(40)]
    assert len(source.classes) == 10


def test_images_are_resized_when_read(fashion_root: Path) -> None:
    source = read_source(_fashion(fashion_root), (14, 12))
    assert source.train[0].shape == (40, 1, 14, 12)
    assert source.train[0][:].dtype == torch.uint8
    whole = read_source(_fashion(fashion_root), (28, 28)).train[0][:].float().mean()
    assert source.train[0][:].float().mean() == pytest.approx(float(whole), abs=1)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("train-labels-idx1-ubyte", b"", "not an idx file"),
        ("train-labels-idx1-ubyte", b"\0\0\x0d\x01\0\0\0\x01abcd", "not an idx file"),
        ("train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0\0\x28abcd", "header says 40 bytes"),
        ("train-labels-idx1-ubyte", b"\0\0\x08\x01\xff\xff\xff\xffab", "header says 4294967295"),
        ("train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0\0\x02" + bytes(9), "and it holds more"),
        ("train-images-idx3-ubyte", b"\0\0\x08\x03\0\0\0\x28" + bytes(8), "images of 0 x 0 pixels"),
        ("train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0\0\x02\0\1", "40 images and 2 labels"),
        ("train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0\0\x28" + b"\x0a" * 40, "label 10"),
        ("train-images-idx3-ubyte.gz", b"not packed", "cannot be read"),
        (
            "train-images-idx3-ubyte.gz",
            gzip.compress(b"12345678" * 9, mtime=0)[:20],
            "cannot be read",
        ),
        ("t10k-labels-idx1-ubyte", None, "no such file"),
    ],
)
def test_damaged_idx_files_are_refused(
    fashion_root: Path, name: str, content: bytes | None, problem: str
) -> None:
    path = fashion_root / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    whole = ("labels" in problem, "label 10" in problem, "pixels" in problem)
    about = fashion_root if any(whole) else path
    message = refusal(_fashion(fashion_root), about)
    assert problem in message
    assert "apt install dataset-fashion-mnist" in message


def test_a_small_file_that_unpacks_to_very_much_is_not_unpacked(fashion_root: Path) -> None:
    header = bytes((0, 0, 8, 3)) + np.array([40, 28, 28], dtype=">u4").tobytes()
    bomb = gzip.compress(header + bytes(1 << 26))
    (fashion_root / "train-images-idx3-ubyte.gz").write_bytes(bomb)
    tracemalloc.start()
    message = refusal(_fashion(fashion_root), fashion_root / "train-images-idx3-ubyte.gz")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "its header says 40 x 28 x 28 bytes and it holds more" in message
    assert most < 1 << 22


def test_a_pipe_is_not_waited_for(fashion_root: Path) -> None:
    path = fashion_root / "train-labels-idx1-ubyte"
    path.unlink()
    os.mkfifo(path)
    assert "is not a regular file" in refusal(_fashion(fashion_root), path)
