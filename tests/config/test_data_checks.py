"""Networks and folders that do not fit the data are refused before an image is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vitnas.config.data import DataConfig, class_names
from vitnas.config.data_checks import check_data_fits, check_data_there
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError


def _model(**changes: object) -> ModelConfig:
    tree = {"img_size": 8, "num_classes": 10, "in_chans": 1, "stem": {"stride": 2}}
    return validate(ModelConfig, tree | {"stages": [_STAGE]} | changes)


_STAGE = {"token_mixer": "pool", "embed_dim": 8}


def test_a_network_for_the_data_is_accepted_at_any_size() -> None:
    check_data_fits(DataConfig(), _model())
    check_data_fits(DataConfig(), _model(img_size=32))


@pytest.mark.parametrize(("change", "nearest"), [({"num_classes": 1000}, 10), ({"in_chans": 3}, 1)])
def test_a_network_for_other_data_is_refused(change: dict[str, int], nearest: int) -> None:
    with pytest.raises(ConfigError, match="digits has") as caught:
        check_data_fits(DataConfig(), _model(**change))
    assert caught.value.address == next(iter(change))
    assert caught.value.nearest == nearest


def test_the_classes_of_a_folder_are_counted_without_reading_an_image(tmp_path: Path) -> None:
    for name in ("cat", "dog", "owl", ".cache"):
        (tmp_path / "train" / name).mkdir(parents=True)
    (tmp_path / "train" / "notes.txt").write_text("not a class")
    data = DataConfig(name="imagefolder", root=str(tmp_path))
    assert class_names(tmp_path / "train") == ("cat", "dog", "owl")
    check_data_fits(data, _model(num_classes=3, in_chans=3))
    with pytest.raises(ConfigError, match="imagefolder has 3 classes"):
        check_data_fits(data, _model(num_classes=10, in_chans=3))


def test_a_folder_that_is_not_there_says_nothing_of_classes(tmp_path: Path) -> None:
    data = DataConfig(name="imagefolder", root=str(tmp_path / "gone"))
    assert data.count_classes() is None
    check_data_fits(data, _model(num_classes=7, in_chans=3))


@pytest.mark.parametrize("name", ["timm", "leaves_package:leaves"])
def test_the_folders_of_other_data_are_not_taken_for_classes(tmp_path: Path, name: str) -> None:
    """Only reading them tells: a class may be empty, in a tar file, or named by a function."""
    for folder in ("cat", "dog", "owl"):
        (tmp_path / "train" / folder).mkdir(parents=True)
    data = DataConfig(name=name, root=str(tmp_path))
    assert data.count_classes() is None
    check_data_fits(data, _model(num_classes=2))


def test_a_folder_of_one_class_is_refused_whatever_the_network_has(tmp_path: Path) -> None:
    (tmp_path / "train" / "cat").mkdir(parents=True)
    data = DataConfig(name="imagefolder", root=str(tmp_path))
    for chosen in (data, data.model_copy(update={"classes": 2})):
        with pytest.raises(ConfigError) as caught:
            check_data_there(chosen)
        assert caught.value.address == "root"
        assert caught.value.rule == f"{tmp_path}/train has 1 class folder, and two are needed"


def test_a_folder_without_train_is_refused_and_its_parent_is_named(tmp_path: Path) -> None:
    """Other programs take the folder of the classes itself."""
    (tmp_path / "train" / "cat").mkdir(parents=True)
    (tmp_path / "train" / "dog").mkdir()
    wrong = DataConfig(name="imagefolder", root=str(tmp_path / "train"))
    with pytest.raises(ConfigError, match=r"has no folder train; images lie in") as caught:
        check_data_there(wrong)
    assert caught.value.nearest == str(tmp_path.resolve())
    (tmp_path / "train").rename(tmp_path / "leaves")
    wrong = DataConfig(name="imagefolder", root=str(tmp_path / "leaves"))
    with pytest.raises(ConfigError, match=r"has no folder train; images lie in") as caught:
        check_data_there(wrong)
    assert caught.value.nearest is None


def test_one_channel_is_no_plural() -> None:
    with pytest.raises(ConfigError, match=r"^in_chans = 3: digits has 1 channel \(nearest: 1\)$"):
        check_data_fits(DataConfig(), _model(in_chans=3))


def test_classes_that_are_chosen_are_counted_without_the_folder(tmp_path: Path) -> None:
    for chosen in (3, ["c", "a", "b"]):
        data = validate(
            DataConfig, {"name": "imagefolder", "root": str(tmp_path), "classes": chosen}
        )
        check_data_fits(data, _model(num_classes=3, in_chans=3))
        with pytest.raises(ConfigError, match="imagefolder has 3 classes"):
            check_data_fits(data, _model(num_classes=4, in_chans=3))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": ["cat", "dgo"]}, r"^classes = 'dgo': .*train has no such class.*: dog\)$"),
        ({"classes": 4}, r"^classes = 4: .*train has 3 classes \(nearest: 3\)$"),
        ({"val_split": "test"}, r"^val_split = 'test': .*test \(nearest: val\)$"),
    ],
)
def test_what_a_folder_lacks_is_said_before_it_is_read(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    for part in ("train", "val"):
        for name in ("cat", "dog", "owl"):
            (tmp_path / part / name).mkdir(parents=True)
    data = validate(DataConfig, {"name": "imagefolder", "root": str(tmp_path), **changes})
    with pytest.raises(ConfigError, match=message):
        check_data_there(data)
    check_data_there(data.model_copy(update={"root": str(tmp_path / "gone")}))
