"""Image folders: what is read, what is skipped, what is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.conftest import refusal
from vitnas.config.training import DataConfig
from vitnas.data import imagefolder
from vitnas.data.table import read_source
from vitnas.errors import MemoryLimitError


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
    assert "not a readable image" in refusal(config, path)


def test_a_torn_image_is_named(folder_root: Path) -> None:
    path = folder_root / "train" / "green" / "0.png"
    path.write_bytes(path.read_bytes()[:50])
    config = DataConfig(name="imagefolder", root=str(folder_root))
    refusal(config, path)


def test_more_images_than_memory_are_refused_before_reading(
    folder_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imagefolder, "read_rgb", lambda *_: pytest.fail("read an image"))
    config = DataConfig(name="imagefolder", root=str(folder_root))
    with pytest.raises(MemoryLimitError, match="take a smaller img_size"):
        read_source(config, (1_000_000, 1_000_000))


def broken(folder: DataConfig, name: str) -> Path:
    assert folder.folder is not None
    path = folder.folder / "train" / name
    path.write_bytes(b"no image")
    return path


def more_images(folder: DataConfig, number: int) -> None:
    assert folder.folder is not None
    one = (folder.folder / "train" / "red" / "0.png").read_bytes()
    for index in range(number):
        (folder.folder / "train" / "red" / f"more{index}.png").write_bytes(one)


def test_all_broken_files_are_counted_and_the_first_ones_named(folder: DataConfig) -> None:
    paths = [broken(folder, f"green/x{index}.png") for index in range(5)]
    message = refusal(folder, paths[0])
    assert all(str(path) in message for path in paths[:3])
    assert str(paths[3]) not in message
    assert "and 2 more: 5 of 20 images cannot be read, more than 1%" in message


def test_a_broken_file_in_a_hundred_is_skipped_and_named(folder: DataConfig) -> None:
    path = broken(folder, "green/0.png")
    more_images(folder, 90)
    source = read_source(folder, (8, 8))
    assert len(source.train[1]) == len(source.train[0]) == 104
    assert source.train[1].bincount().tolist() == [5, 4, 95]
    assert source.train[0][5, :, 0, 0].tolist() == [0, 255, 0]  # the next one took its place
    assert [line.partition(":")[0] for line in source.skipped] == [str(path)]
    listed, skipped = imagefolder.list_sound(folder)
    assert (len(listed.train), len(listed.held), skipped) == (104, 6, source.skipped)
