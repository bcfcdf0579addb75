"""What may be said of data, and what is refused before torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vitnas.config.data import DataConfig, check_data_fits, check_data_there, class_names
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError


def _model(**changes: object) -> ModelConfig:
    tree = {"img_size": 8, "num_classes": 10, "in_chans": 1, "stem": {"stride": 2}}
    return validate(ModelConfig, tree | {"stages": [_STAGE]} | changes)


_STAGE = {"token_mixer": "pool", "embed_dim": 8}


def test_importing_the_configuration_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, vitnas.config.data\n"
        "print([m for m in ('torch', 'numpy', 'sklearn', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("tree", "address"),
    [
        ({"name": "mnist"}, "name"),
        ({"name": "imagefolder"}, "root"),
        ({"name": "digits", "root": "x"}, "root"),
        ({"val_fraction": 0}, "val_fraction"),
        ({"val_fraction": 0.1, "val_split": "test"}, "val_fraction"),
        ({"val_split": "val"}, "val_split"),
        ({"val_split": "train"}, "val_split"),
        ({"val_split": "test", "folds": 2}, "folds"),
        ({"classes": 1}, "classes"),
        ({"classes": 11}, "classes"),
        ({"classes": ["3"]}, "classes"),
        ({"classes": ["3", "4", "3"]}, "classes"),
        ({"val_fraction": 0.6}, "val_fraction"),
        ({"split_seed": -1}, "split_seed"),
        ({"val_fractoin": 0.1}, "val_fractoin"),
    ],
)
def test_data_that_cannot_be_is_refused_with_its_address(tree: Any, address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(DataConfig, tree)
    assert caught.value.address == address
    assert "\n" not in str(caught.value)


def test_configurations_are_frozen_and_hashable() -> None:
    assert hash(DataConfig()) == hash(DataConfig())
    with pytest.raises(ValueError):
        DataConfig().name = "cifar10"  # type: ignore[misc]


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


def test_what_is_not_given_is_not_told() -> None:
    """Keys of answers made before a field was there hold what is told."""
    told = {"name", "root", "val_fraction", "folds", "split_seed"}
    assert set(DataConfig().model_dump()) == told
    given = DataConfig(val_split="test", classes=("4", "3"))
    assert given.model_dump() == {
        **DataConfig().model_dump(),
        "val_split": "test",
        "val_fraction": 0.0,
        "classes": ("3", "4"),
    }
    assert DataConfig.model_validate(given.model_dump()) == given


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
