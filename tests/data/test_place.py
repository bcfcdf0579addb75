"""What is known of data from folders and classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from vitnas.config.data import DataConfig
from vitnas.data.place import classes_of, fingerprint_of, root_of
from vitnas.errors import DataError


def folder(root: Path, **changes: object) -> DataConfig:
    return DataConfig.model_validate({"name": "imagefolder", "root": str(root), **changes})


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert root_of(folder(tmp_path)) == tmp_path
    for missing in (tmp_path / "no", tmp_path / ("long" * 100)):
        with pytest.raises(DataError, match=r"no such folder; imagefolder: lay the images out as"):
            root_of(folder(missing))


def test_a_relative_folder_that_is_not_there_is_named_with_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=rf"^leaves: no such folder in {tmp_path}; imagefolder"):
        root_of(folder(Path("leaves")))


def test_a_class_that_is_not_there_is_named(tmp_path: Path) -> None:
    names = ("cat", "dog", "eel")
    assert classes_of(folder(tmp_path, classes=2), names, "here") == ("cat", "dog")
    with pytest.raises(DataError, match=r"data.classes = 'elk': here has no such class"):
        classes_of(folder(tmp_path, classes=["cat", "elk"]), names, "here")


def test_a_fingerprint_depends_on_names_and_content() -> None:
    told = fingerprint_of(["a", "b"], [b"x"], 3)
    assert (told["num_images"], told["num_classes"]) == (3, 2)
    for names, parts in ((["a", "c"], [b"x"]), (["a", "b"], [b"y"])):
        assert fingerprint_of(names, parts, 3)["digest"] != told["digest"]
