"""Files as they are found on disk: read right, or refused in one line with the path."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vitnas.config.training import DataConfig
from vitnas.errors import DataError
from vitnas.training import sources
from vitnas.training.sources import read_source, split_by_class


def _refusal(config: DataConfig, path: Path, side: int = 8) -> str:
    """The message of the `DataError` that reading gives; names `path`, is one line."""
    with pytest.raises(DataError) as caught:
        read_source(config, (side, side))
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def _fashion(root: Path) -> DataConfig:
    return DataConfig(name="fashion_mnist", root=str(root))


def test_digits_are_all_there_and_the_test_split_is_a_fifth() -> None:
    source = read_source(DataConfig(), (8, 8))
    assert source.test is not None
    assert len(source.train[1]) + len(source.test[1]) == 1797
    assert len(source.test[1]) == pytest.approx(1797 / 5, abs=5)
    assert source.train[0].dtype == torch.uint8
    assert source.train[0].max() == 255


def test_test_digits_do_not_depend_on_the_split_seed() -> None:
    one, two = (read_source(DataConfig(split_seed=seed), (8, 8)) for seed in (0, 1))
    assert one.test is not None
    assert two.test is not None
    assert torch.equal(one.test[0], two.test[0])


def test_idx_files_are_read_plain_and_packed(fashion_root: Path) -> None:
    source = read_source(_fashion(fashion_root), (28, 28))
    packed = gzip.decompress((fashion_root / "train-images-idx3-ubyte.gz").read_bytes())
    assert source.train[0].shape == (40, 1, 28, 28)
    assert source.train[0].numpy().tobytes() == packed[16:]
    assert source.train[1].tolist() == [number % 10 for number in range(40)]
    assert len(source.classes) == 10


def test_images_are_resized_when_read(fashion_root: Path) -> None:
    source = read_source(_fashion(fashion_root), (14, 12))
    assert source.train[0].shape == (40, 1, 14, 12)
    assert source.train[0].dtype == torch.uint8
    whole = read_source(_fashion(fashion_root), (28, 28)).train[0].float().mean()
    assert source.train[0].float().mean() == pytest.approx(float(whole), abs=1)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("train-labels-idx1-ubyte", b"", "not an idx file"),
        ("train-labels-idx1-ubyte", b"\0\0\x0d\x01\0\0\0\x01abcd", "not an idx file"),
        ("train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0\0\x28abcd", "header says 40 bytes"),
        ("train-labels-idx1-ubyte", b"\0\0\x08\x01\xff\xff\xff\xffab", "header says 4294967295"),
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
    about = fashion_root if "labels" in problem or "label 10" in problem else path
    message = _refusal(_fashion(fashion_root), about)
    assert problem in message
    assert "apt install dataset-fashion-mnist" in message


def test_a_missing_folder_says_how_to_get_the_data(tmp_path: Path) -> None:
    config = DataConfig(name="cifar10", root=str(tmp_path / "gone"))
    message = _refusal(config, tmp_path / "gone")
    assert "no such folder" in message
    assert "cifar-10-binary.tar.gz" in message


def test_cifar10_records_are_read(cifar10_root: Path) -> None:
    source = read_source(DataConfig(name="cifar10", root=str(cifar10_root)), (32, 32))
    assert source.test is not None
    assert source.train[0].shape == (100, 3, 32, 32)
    record = (cifar10_root / "data_batch_1.bin").read_bytes()[:3073]
    assert source.train[1][0] == record[0]
    assert source.train[0][0].numpy().tobytes() == record[1:]
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
    assert "not whole records of 3073" in _refusal(config, path)


def test_image_folders_are_read_with_val_as_test(folder_root: Path) -> None:
    config = DataConfig(name="imagefolder", root=str(folder_root))
    source = read_source(config, (8, 8))
    assert source.test is not None
    assert source.classes == ("blue", "green", "red")
    assert source.train[0].shape == (15, 3, 8, 8)
    assert source.train[0][0, :, 0, 0].tolist() == [0, 0, 255]
    assert source.train[1].tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert len(source.test[1]) == 6


def test_an_image_that_is_none_is_named(folder_root: Path) -> None:
    path = folder_root / "train" / "green" / "9.jpg"
    path.write_bytes(b"GIF or what")
    config = DataConfig(name="imagefolder", root=str(folder_root))
    assert "not a readable image" in _refusal(config, path)


def test_a_torn_image_is_named(folder_root: Path) -> None:
    path = folder_root / "train" / "green" / "0.png"
    path.write_bytes(path.read_bytes()[:50])
    config = DataConfig(name="imagefolder", root=str(folder_root))
    _refusal(config, path)


def test_folders_without_classes_or_images_are_refused(tmp_path: Path) -> None:
    config = DataConfig(name="imagefolder", root=str(tmp_path))
    assert "no such folder" in _refusal(config, tmp_path / "train")
    (tmp_path / "train" / "one").mkdir(parents=True)
    assert "1 class folders" in _refusal(config, tmp_path / "train")
    (tmp_path / "train" / "two").mkdir()
    assert "no image in it" in _refusal(config, tmp_path / "train")


def test_a_test_class_that_was_never_trained_is_refused(folder_root: Path) -> None:
    (folder_root / "val" / "mauve").mkdir()
    config = DataConfig(name="imagefolder", root=str(folder_root))
    assert "'mauve'" in _refusal(config, folder_root / "val")


def test_more_images_than_memory_are_refused_before_reading(
    folder_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "read_image", lambda *_: pytest.fail("read an image"))
    config = DataConfig(name="imagefolder", root=str(folder_root))
    message = _refusal(config, folder_root, side=1_000_000)
    assert "smaller img_size" in message


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=80),
    st.floats(0.0, 1.0),
    st.integers(0, 2**31),
)
def test_a_split_is_stratified_complete_and_repeatable(
    labels: list[int], fraction: float, seed: int
) -> None:
    tensor = torch.tensor(labels)
    stay, cut = split_by_class(tensor, fraction, seed)
    assert sorted(stay.tolist() + cut.tolist()) == list(range(len(labels)))
    counts = np.bincount(tensor[cut].numpy(), minlength=5)
    for label, number in enumerate(np.bincount(labels, minlength=5)):
        assert abs(counts[label] - number * fraction) <= 0.5
    again = split_by_class(tensor, fraction, seed)
    assert torch.equal(stay, again[0])
    assert torch.equal(cut, again[1])
