"""A search over image folders: what is skipped is said, and what does not fit."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.config.trees import TREE
from tests.engine.conftest import make_space
from tests.training.conftest import fill_folder
from vitnas.config.space import SearchSpace
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.errors import ConfigError

SERIAL: dict[str, Any] = {"backend": "serial", "gpus_per_trial": 0, "baselines": False}


def folder_space(root: Path, **model: object) -> SearchSpace:
    fixed = {"num_classes": 3, "in_chans": 3, **model}
    data = {"name": "imagefolder", "root": str(root)}
    proxy = {"epochs": 1, "batch_size": 8}
    return make_space(data=data, proxy=proxy, model=deepcopy(TREE["model"]) | fixed)


def test_a_skipped_image_is_said_and_written_down(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    for index in range(100):
        Image.new("RGB", (8, 8)).save(tmp_path / "data" / "train" / "red" / f"more{index}.png")
    torn = tmp_path / "data" / "train" / "red" / "0.png"
    torn.write_bytes(b"")
    said: list[str] = []
    space, options = folder_space(tmp_path / "data"), SearchOptions(trials=1, **SERIAL)
    run = run_search(space, tmp_path / "run", options, notice=said.append)
    assert [line for line in said if "skipped" in line] == [
        f"1 images are skipped: {torn}: not a readable image (its format is not known)"
    ]
    assert run.environment.data.told()["skipped"][0].startswith(str(torn))
    assert run.environment.data.num_train_images == 91


def test_a_space_is_checked_without_its_images(tmp_path: Path) -> None:
    assert folder_space(tmp_path / "gone").example.num_classes == 3
    fill_folder(tmp_path / "data")
    with pytest.raises(ConfigError, match=r"num_classes = 4: imagefolder has 3 classes"):
        folder_space(tmp_path / "data", num_classes=4)
