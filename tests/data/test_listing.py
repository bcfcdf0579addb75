"""The files of an image folder: what is listed, what is skipped, what is an error."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.data.conftest import refusal
from vitnas.config.training import DataConfig
from vitnas.data.listing import images_below, list_folder
from vitnas.data.table import read_source


def test_folders_without_classes_or_images_are_refused(tmp_path: Path) -> None:
    config = DataConfig(name="imagefolder", root=str(tmp_path))
    assert "no such folder" in refusal(config, tmp_path / "train")
    (tmp_path / "train" / "one").mkdir(parents=True)
    assert "1 class folders" in refusal(config, tmp_path / "train")
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
    real = os.scandir

    def scandir(path: str | Path) -> object:
        if str(path) == str(closed):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(closed))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)  # root, who runs tests, may enter every folder
    assert "Permission denied" in refusal(folder, closed)


def test_the_fingerprint_is_of_names_sizes_and_classes(folder: DataConfig) -> None:
    root = Path(str(folder.root))
    first = list_folder(folder).fingerprint
    assert read_source(folder, (8, 8)).fingerprint == first
    (root / "val" / "red" / "0.png").unlink()
    assert list_folder(folder).fingerprint == first
    (root / "train" / "red" / "0.png").rename(root / "train" / "red" / "9.png")
    renamed = list_folder(folder).fingerprint
    assert renamed["digest"] != first["digest"]
    Image.new("RGB", (99, 99)).save(root / "train" / "red" / "9.png")
    assert list_folder(folder).fingerprint["digest"] != renamed["digest"]
    (root / "train" / "red" / "9.png").unlink()
    assert list_folder(folder).fingerprint["num_images"] == 14


def test_images_are_listed_by_class_and_then_by_path(folder: DataConfig) -> None:
    listed = list_folder(folder)
    assert [number for _, number in listed.train] == [0] * 5 + [1] * 5 + [2] * 5
    assert [path.relative_to(listed.root).as_posix() for path, _ in listed.held] == [
        f"val/{name}/{index}.png" for name in ("blue", "green", "red") for index in (0, 1)
    ]
    assert images_below(listed.root / "train") == [path for path, _ in listed.train]


def test_a_part_of_the_classes_keeps_their_numbers(folder: DataConfig) -> None:
    """`val/` may lack classes; those that it has keep the numbers of `train/`."""
    root = Path(str(folder.root))
    shutil.rmtree(root / "val" / "blue")
    assert {number for _, number in list_folder(folder).held} == {1, 2}
    shutil.rmtree(root / "val")
    assert list_folder(folder).held == []
