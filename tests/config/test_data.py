"""What may be said of data, without torch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from vitnas.config.data import DataConfig
from vitnas.config.files import validate
from vitnas.errors import ConfigError


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


def test_a_share_may_be_next_to_nothing() -> None:
    assert validate(DataConfig, {"val_fraction": 1e-320, "folds": 3}).folds == 3


def test_numbers_in_the_place_of_names_are_said_to_be_none() -> None:
    with pytest.raises(ConfigError, match=r"classes = \[3, 4\]: names of classes are text: quote"):
        validate(DataConfig, {"classes": [3, 4]})


def test_configurations_are_frozen_and_hashable() -> None:
    assert hash(DataConfig()) == hash(DataConfig())
    with pytest.raises(ValueError):
        DataConfig().name = "cifar10"  # type: ignore[misc]


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
