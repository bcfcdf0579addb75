"""The files of an image folder: what is listed, what is skipped, what is an error."""

from __future__ import annotations

import errno
import gc
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.data.conftest import refusal
from vitnas.config.data import DataConfig
from vitnas.data import listing
from vitnas.data.decode import read_rgb
from vitnas.data.listing import images_below, list_folder
from vitnas.data.table import read_source
from vitnas.errors import DataError


def test_folders_without_classes_or_images_are_refused(tmp_path: Path) -> None:
    config = DataConfig(name="imagefolder", root=str(tmp_path))
    assert "no such folder" in refusal(config, tmp_path / "train")
    (tmp_path / "train" / "one").mkdir(parents=True)
    assert "1 class folder, and two are needed" in refusal(config, tmp_path / "train")
    (tmp_path / "train" / "two").mkdir()
    assert "no image in it" in refusal(config, tmp_path / "train")


def test_a_test_class_that_was_never_trained_is_refused(folder_root: Path) -> None:
    (folder_root / "val" / "mauve").mkdir()
    config = DataConfig(name="imagefolder", root=str(folder_root))
    assert "'mauve'" in refusal(config, folder_root / "val")


def test_what_systems_leave_behind_is_skipped(folder: DataConfig) -> None:
    train = Path(str(folder.root)) / "train"
    (train / ".DS_Store").write_bytes(b"x")
    (train / "red" / "Thumbs.db").write_bytes(b"x")
    (train / "red" / "._0.png").write_bytes(b"resource fork")
    for name in ("red/.ipynb_checkpoints", "red/__MACOSX", "__MACOSX", ".cache"):
        (train / name).mkdir()
        (train / name / "0.png").write_bytes(b"x")
    (train / "red" / "up").symlink_to(train)
    listed = list_folder(folder)
    assert listed.classes == ("blue", "green", "red")
    assert len(listed.train) == 15


def test_a_class_without_images_is_refused(folder: DataConfig) -> None:
    empty = Path(str(folder.root)) / "train" / "mauve"
    empty.mkdir()
    (empty / "notes.txt").write_text("to come")
    assert "no image in it" in refusal(folder, empty)


def test_a_folder_that_cannot_be_read_is_named(
    folder: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = Path(str(folder.root)) / "train" / "green"
    real = os.open

    def opened(path: str | Path, *rest: Any, **named: Any) -> int:
        if str(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(closed))
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", opened)  # root, who runs tests, may enter every folder
    assert "Permission denied" in refusal(folder, closed)


def test_the_fingerprint_is_of_names_sizes_and_classes(folder: DataConfig) -> None:
    root = Path(str(folder.root))
    first = list_folder(folder).fingerprint
    assert read_source(folder, (8, 8)).fingerprint == first
    (root / "val" / "red" / "0.png").unlink()
    tested = list_folder(folder).fingerprint
    assert tested["test"] != first["test"]
    assert {**tested, "test": first["test"]} == first
    (root / "train" / "red" / "0.png").rename(root / "train" / "red" / "9.png")
    renamed = list_folder(folder).fingerprint
    assert renamed["digest"] != first["digest"]
    Image.new("RGB", (99, 99)).save(root / "train" / "red" / "9.png")
    assert list_folder(folder).fingerprint["digest"] != renamed["digest"]
    (root / "train" / "red" / "9.png").unlink()
    assert list_folder(folder).fingerprint["num_images"] == 14


def test_the_fingerprint_is_also_of_own_images_that_score(folder: DataConfig) -> None:
    config = DataConfig(name="imagefolder", root=folder.root, val_split="val")
    first = list_folder(config).fingerprint
    plain = dict(list_folder(folder).fingerprint)
    scoring = plain.pop("test")
    assert {**plain, "scoring": scoring} == first
    path = Path(str(folder.root)) / "val" / "red" / "0.png"
    path.rename(path.with_name("7.png"))
    assert list_folder(config).fingerprint["scoring"] != first["scoring"]


def test_images_are_listed_by_class_and_then_by_path(folder: DataConfig) -> None:
    listed = list_folder(folder)
    assert [file.number for file in listed.train] == [0] * 5 + [1] * 5 + [2] * 5
    assert [Path(file.path).relative_to(listed.root).as_posix() for file in listed.test] == [
        f"val/{name}/{index}.png" for name in ("blue", "green", "red") for index in (0, 1)
    ]
    below = [file.path for file in images_below(listed.root / "train")]
    assert below == [file.path for file in listed.train]


@pytest.mark.parametrize("suffix", ["png", "jpeg", "JPG", "bmp", "gif", "webp", "pgm", "tiff"])
def test_every_format_that_is_read_is_listed(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    Image.new("L", (8, 8), 200).save(path)
    assert [file.path for file in images_below(tmp_path)] == [str(path)]
    assert np.asarray(read_rgb(path)).shape == (8, 8, 3)


def test_folders_inside_a_class_are_sorted_by_their_parts(folder: DataConfig) -> None:
    """As paths are: `a/x.png` stands before `a-b/x.png`, which as text is the lesser one."""
    red = Path(str(folder.root)) / "train" / "red"
    for name in ("a", "a-b"):
        (red / name).mkdir()
        (red / name / "x.png").hardlink_to(red / "0.png")
    found = [Path(file.path) for file in images_below(red)]
    assert found == sorted(found)
    assert found[-2:] == [red / "a" / "x.png", red / "a-b" / "x.png"]


def test_a_file_is_listed_with_its_size_and_time(folder: DataConfig) -> None:
    path = Path(str(folder.root)) / "train" / "red" / "4.png"
    there = path.stat()
    assert list_folder(folder).train[-1] == (str(path), 2, there.st_size, there.st_mtime_ns)
    path.unlink()
    path.symlink_to("nowhere.png")
    assert list_folder(folder).train[-1] == (str(path), 2, -1, 0)


def test_the_fingerprint_of_runs_made_before_is_the_same(tmp_path: Path) -> None:
    for part, label in (("train/a/0.png", 1), ("train/b/1.png", 2), ("train/b/n/x.jpg", 3)):
        path = tmp_path / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * label)
    config = DataConfig(name="imagefolder", root=str(tmp_path))
    assert list_folder(config).fingerprint == {
        "num_images": 3,
        "num_classes": 2,
        "digest": "c082ec19a655d1c0",
    }


def test_a_part_of_the_classes_keeps_their_numbers(folder: DataConfig) -> None:
    """`val/` may lack classes; those that it has keep the numbers of `train/`."""
    root = Path(str(folder.root))
    shutil.rmtree(root / "val" / "blue")
    assert {file.number for file in list_folder(folder).test} == {1, 2}
    shutil.rmtree(root / "val")
    assert list_folder(folder).test == []


def folder_with(folder: DataConfig, **changes: object) -> DataConfig:
    return DataConfig.model_validate({"name": "imagefolder", "root": folder.root, **changes})


def test_images_of_their_own_score(folder: DataConfig) -> None:
    root = Path(str(folder.root))
    listed = list_folder(folder_with(folder, val_split="val"))
    assert listed.val == list_folder(folder).test
    assert (len(listed.train), listed.test) == (15, [])
    shutil.copytree(root / "val", root / "test")
    for split, other in (("val", "test"), ("test", "val")):
        listed = list_folder(folder_with(folder, val_split=split))
        assert listed.val is not None
        assert {Path(file.path).parts[-3] for file in listed.val} == {split}
        assert {Path(file.path).parts[-3] for file in listed.test} == {other}


def test_a_split_that_is_not_there_is_refused(folder: DataConfig) -> None:
    message = refusal(folder_with(folder, val_split="test"), Path(str(folder.root)) / "test")
    assert "val_split: test needs it" in message


def test_only_chosen_classes_are_listed(folder: DataConfig) -> None:
    whole = list_folder(folder)
    for chosen in (["red", "blue"], ["blue", "red"]):
        listed = list_folder(folder_with(folder, classes=chosen))
        assert listed.classes == ("blue", "red")
        assert [file.number for file in listed.train] == [0] * 5 + [1] * 5
        assert [file.path for file in listed.train] == [
            file.path for file in whole.train if "green" not in file.path
        ]
        assert len(listed.test) == 4
        assert listed.fingerprint["digest"] != whole.fingerprint["digest"]
    assert list_folder(folder_with(folder, classes=2)).classes == ("blue", "green")
    message = refusal(folder_with(folder, classes=["rde", "blue"]), Path(str(folder.root)))
    assert message.startswith("data.classes = 'rde': ")
    assert message.endswith("has no such class (nearest: red)")
    shutil.rmtree(Path(str(folder.root)) / "val" / "red")
    shutil.rmtree(Path(str(folder.root)) / "val" / "blue")
    refusal(folder_with(folder, classes=["red", "blue"]), Path(str(folder.root)) / "val")


def test_the_collector_of_garbage_is_on_again(folder: DataConfig) -> None:
    list_folder(folder)
    assert gc.isenabled()
    (Path(str(folder.root)) / "train" / "mauve").mkdir()
    with pytest.raises(DataError):
        list_folder(folder)
    assert gc.isenabled()


@pytest.mark.parametrize("waits", [0, 1000], ids=["from memory", "over a network"])
def test_many_classes_are_listed_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    for number in range(30):
        (tmp_path / "train" / f"{number:02}").mkdir(parents=True)
        for name in ("b.png", "a.png"):
            (tmp_path / "train" / f"{number:02}" / name).touch()
    monkeypatch.setattr(listing, "_waits", iter((0, waits)).__next__)
    listed = list_folder(DataConfig(name="imagefolder", root=str(tmp_path))).train
    expected = [f"{number:02}/{name}" for number in range(30) for name in ("a.png", "b.png")]
    assert [file.path[-8:] for file in listed] == expected
    assert [file.number for file in listed] == [number // 2 for number in range(60)]
