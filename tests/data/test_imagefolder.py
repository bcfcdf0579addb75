"""Image folders: what is read, what is skipped, what is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.data.conftest import refusal
from vitnas.config.data import DataConfig
from vitnas.data import build, decode, imagefolder
from vitnas.data.rows import channel_sums, taken, there
from vitnas.data.source import Used, everything
from vitnas.data.table import read_source
from vitnas.data.telling import Teller
from vitnas.errors import DataError, MemoryLimitError


def test_image_folders_are_read_with_val_as_test(folder_root: Path) -> None:
    config = DataConfig(name="imagefolder", root=str(folder_root))
    source = read_source(config, (8, 8))
    assert source.test is not None
    assert source.classes == ("blue", "green", "red")
    assert source.train[0].shape == (15, 3, 8, 8)
    assert source.train[0][:][0, :, 0, 0].tolist() == [0, 0, 255]
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
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
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
    pixels = source.train[0][:]
    assert pixels[5, :, 0, 0].tolist() == [0, 255, 0]  # the next one took its place
    assert [line.partition(":")[0] for line in source.skipped] == [str(path)]
    checked = imagefolder.check_folder(folder)
    assert (len(checked.folder.train), len(checked.folder.test)) == (104, 6)
    assert checked.sound.all()
    assert checked.skipped == source.skipped
    assert checked.fingerprint == source.fingerprint, "a long training is of the search's images"


def some(labels: Tensor) -> Tensor:
    return torch.arange(0, len(labels), 3)


def test_only_what_is_used_is_read(folder: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
    seen: list[Path] = []
    real = decode.read_rgb

    def read_rgb(path: Path) -> Image.Image:
        seen.append(path)
        return real(path)

    whole = read_source(folder, (8, 8)).train[0][:]
    monkeypatch.setattr(imagefolder, "read_rgb", read_rgb)
    images, labels = read_source(folder, (8, 8), some).train
    assert len(images) == len(labels) == 15
    assert len(seen) == 5 + 6
    assert torch.equal(images[torch.arange(0, 15, 3)], whole[::3])
    with pytest.raises(IndexError, match="not read"):
        images[torch.tensor([1])]


@pytest.mark.parametrize("used", [everything, some])
def test_images_are_the_same_with_and_without_a_cache(
    folder: DataConfig, used: Used, monkeypatch: pytest.MonkeyPatch
) -> None:
    more_images(folder, 300)
    broken(folder, "green/1.png")
    cached, again = (read_source(folder, (8, 6), used) for _ in range(2))
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
    memory = read_source(folder, (8, 6), used)
    for source in (cached, again):
        assert (source.skipped, source.classes) == (memory.skipped, memory.classes)
        for one, other in ((source.train, memory.train), (source.test, memory.test)):
            assert one is not None
            assert other is not None
            assert torch.equal(one[1], other[1])
            index = there(other[0], torch.arange(len(other[1])))
            assert torch.equal(there(one[0], torch.arange(len(one[1]))), index)
            assert torch.equal(one[0][index], other[0][index])
            same = map(torch.equal, channel_sums(taken(one[0], index)),
                       channel_sums(taken(other[0], index)))  # fmt: skip
            assert all(same)


def test_what_is_read_of_all_parts_is_told_once_and_before(
    folder: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    more_images(folder, 300)
    monkeypatch.setattr(build, "_LONG_S", 0.0)
    notices, told_before = list[str](), list[int]()
    teller = Teller(notices.append, lambda _: told_before.append(len(notices)))
    for _ in range(2):
        read_source(folder, (8, 8), teller=teller)
    (line,) = notices
    assert ": 321 images are decoded once to 8 x 8 pixels and kept: 61.6 kB in " in line
    assert set(told_before) == {1}


def test_a_broken_file_among_those_used_is_not_there_and_all_others_keep_their_numbers(
    folder: DataConfig,
) -> None:
    more_images(folder, 300)
    whole = read_source(folder, (8, 8)).train[0][:]
    path = broken(folder, "green/1.png")
    source = read_source(folder, (8, 8), some)
    assert [line.partition(":")[0] for line in source.skipped] == [str(path)]
    images = source.train[0]
    assert there(images, torch.tensor([3, 6, 9])).tolist() == [3, 9]
    assert torch.equal(images[torch.tensor([9, 12])], whole[[9, 12]])
    checked = imagefolder.check_folder(folder, some)
    assert len(checked.folder.train) == 315
    assert checked.sound.nonzero().squeeze(1).tolist() == [n for n in range(0, 315, 3) if n != 6]


def test_broken_files_that_are_not_used_do_no_harm(folder: DataConfig) -> None:
    broken(folder, "green/0.png")
    assert read_source(folder, (8, 8), some).skipped == ()


def test_more_than_one_in_a_hundred_of_those_used_is_an_error(folder: DataConfig) -> None:
    more_images(folder, 300)
    for name in ("blue/0.png", "blue/3.png"):
        path = broken(folder, name)
    with pytest.raises(DataError, match="2 of 105 images cannot be read, more than 1%") as caught:
        read_source(folder, (8, 8), some)
    assert str(path) in str(caught.value)
