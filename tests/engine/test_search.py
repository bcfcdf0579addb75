"""Whole searches: over image folders, where what is skipped is said, and by a paper's recipe."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.config.trees import TREE
from tests.engine.conftest import make_space
from tests.training.conftest import fill_folder
from vitnas.config.data import DataConfig
from vitnas.config.files import dump_yaml, validate
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.space import SearchSpace, load_space
from vitnas.config.training import ProxyConfig
from vitnas.engine.options import SearchOptions
from vitnas.engine.recipe import _is_asked
from vitnas.engine.search import run_search
from vitnas.engine.store.weights import KeptWeights
from vitnas.engine.watch.watcher import Watcher
from vitnas.errors import ConfigError, DataError, RunError, VitnasError
from vitnas.exported.folder import CONFIG_FILE, WEIGHTS_FILE
from vitnas.files import write_bytes
from vitnas.nn.model import build_model
from vitnas.nn.weights import network_with, weights_bytes
from vitnas.run import Run
from vitnas.training.data import load_data
from vitnas.training.proxy import ProxyTraining
from vitnas.training.score import evaluate

SERIAL: dict[str, Any] = {"backend": "serial", "gpus_per_trial": 0, "baselines": False}


def folder_space(root: Path, val_split: str | None = None, **model: object) -> SearchSpace:
    fixed = {"num_classes": 3, "in_chans": 3, **model}
    data = {"name": "imagefolder", "root": str(root), "val_split": val_split}
    proxy = {"epochs": 1, "batch_size": 8}
    return make_space(data=data, proxy=proxy, model=deepcopy(TREE["model"]) | fixed)


@pytest.mark.slow
def test_a_skipped_image_is_said_and_written_down(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    for index in range(100):
        Image.new("RGB", (8, 8)).save(tmp_path / "data" / "train" / "red" / f"more{index}.png")
    torn = tmp_path / "data" / "train" / "red" / "0.png"
    torn.write_bytes(b"")
    said: list[str] = []
    space, options = folder_space(tmp_path / "data"), SearchOptions(trials=1, **SERIAL)
    run = run_search(space, tmp_path / "run", options, Watcher(notice=said.append))
    assert [line for line in said if "skipped" in line] == [
        f"1 image is skipped: {torn}: not a readable image (its format is not known)"
    ]
    assert run.environment.data.told()["skipped"][0].startswith(str(torn))
    assert run.environment.data.num_train_images == 91


def test_a_search_of_other_epochs_is_another_run(tmp_path: Path) -> None:
    space, path = make_space(proxy={"epochs": 3, "batch_size": 32}), tmp_path / "run"
    run = run_search(space, path, SearchOptions(trials=1, epochs=2, pruner="none", **SERIAL))
    assert [len(trial.curve) for trial in run.trials] == [2]
    assert run.epochs == 2
    for epochs in (None, 4):
        with pytest.raises(RunError, match=rf"proxy\.epochs: 2 -> {epochs or 3}; use another"):
            run_search(space, path, SearchOptions(trials=2, epochs=epochs, **SERIAL))
    again = run_search(space, path, SearchOptions(trials=2, epochs=2, pruner="none", **SERIAL))
    assert again.trials[0] == run.trials[0]
    assert len(again.trials) == 2


def test_a_search_at_another_rate_is_another_run_and_tunes_nothing(tmp_path: Path) -> None:
    space, path = make_space(proxy={"epochs": 2, "batch_size": 32}), tmp_path / "run"
    run = run_search(space, path, SearchOptions(trials=1, lr=0.02, pruner="none", **SERIAL))
    assert run.lr == 0.02
    with pytest.raises(RunError, match=r"proxy\.lr: 0\.02 -> "):
        run_search(space, path, SearchOptions(trials=2, **SERIAL))
    asked = folder_space(tmp_path / "images")
    assert _is_asked(asked, tmp_path / "new", SearchOptions(trials=20, **SERIAL))
    assert not _is_asked(asked, tmp_path / "new", SearchOptions(trials=20, lr=0.02, **SERIAL))


def test_a_space_is_checked_without_its_images(tmp_path: Path) -> None:
    assert folder_space(tmp_path / "gone").example.num_classes == 3
    fill_folder(tmp_path / "data")
    with pytest.raises(ConfigError, match=r"num_classes = 4: imagefolder has 3 classes"):
        folder_space(tmp_path / "data", num_classes=4)


def recipe_space(folder: Path, **proxy: Any) -> SearchSpace:
    """Digits by SReT's recipe, two epochs."""
    short = {"recipe": "sret_t", "epochs": 2, "batch_size": 32, "lr": 0.01, **proxy}
    path = folder / "space.yaml"
    path.write_text(dump_yaml(TREE | {"proxy": short}))
    return load_space(path)


def searched(space: SearchSpace, folder: Path, trials: int) -> Run:
    options = SearchOptions(trials=trials, seed=3, pruner="none", **SERIAL)
    return run_search(space, folder, options)


@pytest.mark.slow
def test_a_search_by_a_papers_recipe_resumes(tmp_path: Path) -> None:
    space, digits = recipe_space(tmp_path), load_data(DataConfig(), 8)
    assert len(searched(space, tmp_path / "run", 1).trials) == 1
    run = searched(space, tmp_path / "run", 2)
    told = run.environment.proxy.told()
    assert (told["recipe"], told["epochs"], told["mixup"]) == ("sret_t", 2, 0.8)
    assert len(run.trials) == 2
    for trial in run.trials:
        training = ProxyTraining(trial.network, space.config.proxy, digits, trial.seed)
        assert [round(each.top1, 4) for each in training] == list(trial.curve)


@pytest.mark.slow
def test_the_moving_average_is_what_is_scored_and_kept(tmp_path: Path) -> None:
    images = load_data(DataConfig(), 8)
    run = searched(recipe_space(tmp_path, ema_decay=0.9), tmp_path / "run", 1)
    (trial,) = run.front
    kept = KeptWeights(run.path)
    weights = kept.get(trial.number)
    assert weights is not None
    network = network_with(trial.network, weights, kept.path(trial.number))
    assert round(evaluate(network, images.val), 4) == trial.curve[-1]


def test_a_space_that_names_a_recipe_is_not_tuned_first(tmp_path: Path) -> None:
    fill_folder(tmp_path / "data")
    options = SearchOptions(trials=12, **SERIAL)
    plain = folder_space(tmp_path / "data")
    assert _is_asked(plain, tmp_path / "run", options)
    fields = plain.config.proxy.model_dump() | {"recipe": "small"}
    named = plain.with_proxy(validate(ProxyConfig, fields))
    assert not _is_asked(named, tmp_path / "run", options)


def teacher(folder: Path, classes: int) -> str:
    tree = {**TREE["model"], "num_classes": classes, "groups": "[1]"}
    tree["stages"] = [{"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8}]
    config = ModelConfig.model_validate(tree)
    save_config(config, folder / CONFIG_FILE)
    write_bytes(folder / WEIGHTS_FILE, weights_bytes(build_model(config)))
    return str(folder)


@pytest.mark.slow
def test_a_search_learns_from_a_teacher(tmp_path: Path) -> None:
    distill = {"teacher": teacher(tmp_path / "teacher", 10)}
    run = searched(recipe_space(tmp_path, distill=distill), tmp_path / "run", 1)
    (trial,) = run.trials
    plain = searched(recipe_space(tmp_path), tmp_path / "plain", 1)
    assert len(trial.curve) == 2
    assert trial.curve != plain.trials[0].curve


@pytest.mark.parametrize(
    ("classes", "weights", "message"),
    [
        (7, None, r"space\.yaml: proxy\.distill\.teacher = .*has 7 classes and digits has 10"),
        (10, "w.pth", r"space\.yaml: proxy\.distill\.weights = 'w\.pth': an exported folder has"),
        (0, None, r"space\.yaml: proxy\.distill\.teacher = 'gone': is neither an exported folder"),
        (0, "w.pth", r"proxy\.distill\.teacher = 'gone': is neither an exported folder"),
    ],
)
def test_a_teacher_that_cannot_teach_stops_a_search_before_it_begins(
    classes: int, weights: str | None, message: str, tmp_path: Path
) -> None:
    name = teacher(tmp_path / "teacher", classes) if classes else "gone"
    space = recipe_space(tmp_path, distill={"teacher": name, "weights": weights})
    with pytest.raises(VitnasError, match=message) as caught:
        searched(space, tmp_path / "run", 1)
    assert isinstance(caught.value, (ConfigError, DataError))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
