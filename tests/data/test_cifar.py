"""CIFAR's records: read right, or refused in one line with the path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.data.conftest import refusal
from vitnas.config.data import DataConfig
from vitnas.data.table import read_source


def test_a_missing_folder_says_how_to_get_the_data(tmp_path: Path) -> None:
    config = DataConfig(name="cifar10", root=str(tmp_path / "gone"))
    message = refusal(config, tmp_path / "gone")
    assert "no such folder" in message
    assert "cifar-10-binary.tar.gz" in message


def test_cifar10_records_are_read(cifar10_root: Path) -> None:
    source = read_source(DataConfig(name="cifar10", root=str(cifar10_root)), (32, 32))
    assert source.test is not None
    assert source.train[0].shape == (100, 3, 32, 32)
    record = (cifar10_root / "data_batch_1.bin").read_bytes()[:3073]
    assert source.train[1][0] == record[0]
    assert source.train[0][:][0].numpy().tobytes() == record[1:]
    assert source.classes == tuple("0123456789")


def test_cifar100_takes_the_fine_label_and_its_names(cifar100_root: Path) -> None:
    names = [f"name{number}" for number in range(100)]
    (cifar100_root / "fine_label_names.txt").write_text("\n".join(names))
    source = read_source(DataConfig(name="cifar100", root=str(cifar100_root)), (32, 32))
    assert source.train[1].tolist() == [number % 100 for number in range(200)]
    assert source.classes == tuple(names)


@pytest.mark.parametrize("size", [0, 100, 3074])
def test_torn_cifar_files_are_refused(cifar10_root: Path, size: int) -> None:
    path = cifar10_root / "data_batch_3.bin"
    path.write_bytes(b"\0" * size)
    config = DataConfig(name="cifar10", root=str(cifar10_root))
    assert "not whole records of 3073" in refusal(config, path)


def test_a_pipe_is_not_waited_for(cifar10_root: Path) -> None:
    path = cifar10_root / "test_batch.bin"
    path.unlink()
    os.mkfifo(path)
    config = DataConfig(name="cifar10", root=str(cifar10_root))
    assert "is not a regular file" in refusal(config, path)
