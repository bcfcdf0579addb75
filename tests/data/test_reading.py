"""What a search will read is told beforehand, and it is what the search reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vitnas.config.data import DataConfig
from vitnas.data.cache import held_sets, home
from vitnas.data.reading import reading_of
from vitnas.errors import DataError
from vitnas.training.data import load_data


def folder(root: Path, sizes: dict[str, int]) -> Path:
    for place, number in sizes.items():
        (root / place).mkdir(parents=True)
        for index in range(number):
            Image.new("RGB", (8, 8), (index, 0, 0)).save(root / place / f"{index}.png")
    return root


SIZES = {"train/cat": 23, "train/dog": 11, "test/cat": 4, "test/dog": 3}


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.3])
@pytest.mark.parametrize("changes", [{}, {"val_fraction": 0.35}, {"val_split": "test"}])
def test_the_number_is_that_of_the_images_that_are_read(
    tmp_path: Path, fraction: float, changes: dict[str, Any]
) -> None:
    root = folder(tmp_path / "pets", SIZES)
    config = DataConfig.model_validate({"name": "imagefolder", "root": str(root), **changes})
    found = reading_of(config, [(8, 6)], fraction)
    assert found is not None
    assert (found.num_classes, found.num_images) == (2, 41)
    load_data(config, (8, 6), fraction)
    assert found.num_read == sum(held.images.facts.number for held in held_sets(home()))
    assert found.told()["bytes"] == [found.num_read * 3 * 8 * 6]


@pytest.mark.usefixtures("either_cache")
def test_there_is_a_line_for_each_size(tmp_path: Path) -> None:
    root = folder(tmp_path / "pets", SIZES)
    config = DataConfig(name="imagefolder", root=str(root))
    found = reading_of(config, [(8, 8), (16, 16)], 1.0)
    assert found is not None
    first, small, large = found.lines()
    assert first == "  images      41 of 2 classes"
    if home() is None:
        assert small == f"  to read     {root}: 41 images in memory: 7.87 kB"
        return
    line = "41 images are decoded once to {0} x {0} pixels and kept: {1} in {2}"
    assert small == f"  to read     {root}: {line.format(8, '7.87 kB', home())}"
    assert large == f"  to read     {root}: {line.format(16, '31.5 kB', home())}"


def test_with_folds_it_is_the_most(tmp_path: Path) -> None:
    root = folder(tmp_path / "pets", SIZES)
    config = DataConfig(name="imagefolder", root=str(root), folds=3)
    found = reading_of(config, [(8, 8)], 0.5)
    assert found is not None
    assert found.num_read == 41


def test_of_other_data_and_of_missing_ones_nothing_is_told(tmp_path: Path) -> None:
    missing = DataConfig(name="imagefolder", root=str(tmp_path / "no"))
    assert reading_of(missing, [(8, 8)], 1.0) is None
    assert reading_of(DataConfig(), [(8, 8)], 1.0) is None


def test_a_class_without_images_is_an_error(tmp_path: Path) -> None:
    root = folder(tmp_path / "pets", {"train/cat": 2, "train/dog": 0})
    with pytest.raises(DataError, match=r"train/dog: no image in it"):
        reading_of(DataConfig(name="imagefolder", root=str(root)), [(8, 8)], 1.0)
