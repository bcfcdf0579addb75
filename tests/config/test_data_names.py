"""Images by what a user calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vitnas.config.data_names import read_data
from vitnas.config.space import load_space
from vitnas.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("digits", {"name": "digits", "root": None}),
        ("cifar10:/data/x:y", {"name": "cifar10", "root": "/data/x:y"}),
        ("fashion_mnist", {"name": "fashion_mnist", "root": None}),
    ],
)
def test_data_by_name(text: str, expected: dict[str, Any]) -> None:
    config = read_data(text)
    assert {field: getattr(config, field) for field in expected} == expected


def test_the_data_of_a_space() -> None:
    assert read_data("space/digits.yaml") == load_space("digits").config.data


def test_data_in_a_folder(tmp_path: Path) -> None:
    assert read_data(str(tmp_path)).name == "imagefolder"


@pytest.mark.parametrize("text", ["", "digit", "\0"])
def test_another_name_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--data = '.*': is neither a folder"):
        read_data(text)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("digits:/data", "digits come with scikit-learn and have no folder"),
        ("imagefolder", "is required for imagefolder: the folder that holds train/"),
    ],
)
def test_a_name_that_does_not_fit_its_folder_is_refused_as_it_is_given(
    text: str, rule: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_data(text)
    assert str(caught.value) == f"--data = '{text}': {rule}"


def test_training_images_must_be_there_to_train_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few/train/cats").mkdir(parents=True)
    (tmp_path / "many/train/cats").mkdir(parents=True)
    (tmp_path / "many/train/dogs").mkdir()
    with pytest.raises(ConfigError) as caught:
        read_data("few", trains=True)
    rule = "has 1 class folder, and two are needed"
    assert str(caught.value) == f"--data = 'few': few/train {rule}"
    with pytest.raises(ConfigError) as caught:
        read_data("many/train", trains=True)
    rule = "has no folder train; images lie in train/<class>/<image>"
    assert str(caught.value) == f"--data = 'many/train': {rule} (nearest: {tmp_path}/many)"
    assert read_data("many", trains=True) == read_data("many")
    assert read_data("few").root == "few", "which may have test images"


def test_a_function_of_a_package_that_is_not_there_is_refused_before_anything_else() -> None:
    with pytest.raises(ConfigError) as caught:
        read_data("no_such_package.images:make", trains=True)
    assert str(caught.value) == (
        "--data = 'no_such_package.images:make': the package no_such_package is not installed "
        "here, nor in a folder of PYTHONPATH"
    )
    assert read_data("no_such_package:make").name == "no_such_package:make", "nothing is trained"
    assert read_data("vitnas.plugins:load", trains=True).name == "vitnas.plugins:load"


def test_a_mistake_in_a_space_file_is_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "my.yaml").write_text("extends: digits\nname: my\ndata: {name: imagefolder}\n")
    with pytest.raises(ConfigError, match=r"my\.yaml: data\.root: is required"):
        read_data(str(tmp_path / "my.yaml"))


def test_a_shipped_space_stands_for_its_data() -> None:
    assert read_data("fashion_32") == load_space("fashion_32").config.data
