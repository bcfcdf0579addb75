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
    with pytest.raises(ConfigError, match="is neither a folder"):
        read_data(text)


def test_a_shipped_space_stands_for_its_data() -> None:
    assert read_data("fashion_32") == load_space("fashion_32").config.data
