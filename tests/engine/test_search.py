"""A search over image folders: what is trained on stays the same, what is skipped is said."""

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
from vitnas.engine.store.study import read_run
from vitnas.errors import ConfigError, RunError

SERIAL: dict[str, Any] = {"backend": "serial", "gpus_per_trial": 0, "baselines": False}


def folder_space(root: Path, **model: object) -> SearchSpace:
    fixed = {"num_classes": 3, "in_chans": 3, **model}
    data = {"name": "imagefolder", "root": str(root)}
    proxy = {"epochs": 1, "batch_size": 8}
    return make_space(data=data, proxy=proxy, model=deepcopy(TREE["model"]) | fixed)


def test_a_run_goes_on_only_with_the_images_that_it_began_with(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    space, out = folder_space(tmp_path / "data"), tmp_path / "run"
    run_search(space, out, SearchOptions(trials=1, **SERIAL))
    run_search(space, out, SearchOptions(trials=2, **SERIAL))
    before = read_run(out)
    Image.new("RGB", (8, 8)).save(tmp_path / "data" / "train" / "red" / "new.png")
    message = r"run: the training images have changed .*num_images: 15 -> 16; use another --out"
    with pytest.raises(RunError, match=message):
        run_search(space, out, SearchOptions(trials=3, **SERIAL))
    assert read_run(out) == before


def test_which_weights_a_run_keeps_stays_until_it_is_told_otherwise(tmp_path: Path) -> None:
    """They are kept for a `vitnas export` of any network, which a session more must not undo."""
    space, out = make_space(proxy={"epochs": 1, "train_fraction": 0.1}), tmp_path / "run"
    fixed = {**SERIAL, "sampler": "random", "pruner": "none"}

    def kept(trials: int, **options: Any) -> tuple[int, int]:
        run = run_search(space, out, SearchOptions(trials=trials, **fixed, **options))
        return len(run.complete), len(list((out / "weights").iterdir()))

    assert kept(3, keep_weights="100MB") == (3, 3)
    assert kept(4) == (4, 4)
    assert kept(5) == (5, 5), "the third session knows of the first one's"
    complete, on_front = kept(6, keep_weights="1")
    assert on_front == len(read_run(out).front) < complete


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
