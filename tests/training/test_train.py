"""From a plan to a folder: all or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock

from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig, save_config
from vitnas.config.recipe import Recipe
from vitnas.errors import ConfigError, RunError, VitnasError
from vitnas.exported.read import load
from vitnas.training.data import load_data
from vitnas.training.final import Entry
from vitnas.training.first import start_from
from vitnas.training.plan import Plan, make_plan
from vitnas.training.proxy import fresh_model
from vitnas.training.score import evaluate
from vitnas.training.train import train_network

SHORT: dict[str, Any] = {"epochs": 2, "train_fraction": 0.2, "lr": 3e-3, "warmup_epochs": 1.0}


def recipe(**changes: Any) -> Recipe:
    return Recipe.model_validate(SHORT | changes)


def plan(model_file: Path, **changes: Any) -> Plan:
    return make_plan(model_file, recipe=recipe(**changes), seed=3)


def test_an_exported_folder_has_what_was_scored(model_file: Path, tmp_path: Path) -> None:
    seen: list[Entry] = []
    folder = train_network(
        plan(model_file, ema_decay=0.9), tmp_path / "out", device="cpu", listener=seen.append
    )
    names = {
        "README.md",
        "config.json",
        "config.yaml",
        "log.jsonl",
        "model.safetensors",
        "recipe.yaml",
    }
    assert {path.name for path in folder.iterdir()} == names
    assert sorted(tmp_path.iterdir()) == [model_file, folder]
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert lines == seen
    assert evaluate(load(folder), load_data(DataConfig(), 8).val) == lines[-1]["top1"]
    assert f"{lines[-1]['top1']:.2f} %" in (folder / "README.md").read_text()


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_share_that_leaves_no_image_is_one_line(
    tiny_config: ModelConfig, folder_root: Path, tmp_path: Path, in_folder: bool
) -> None:
    sizes = {"num_classes": 3, "in_chans": 3} if in_folder else {}
    config = ModelConfig.model_validate(tiny_config.model_dump() | sizes)
    data = DataConfig(name="imagefolder", root=str(folder_root)) if in_folder else DataConfig()
    wanted = Plan(config, data, recipe(train_fraction=0.001))
    with pytest.raises(VitnasError, match=r"train_fraction|too few") as caught:
        train_network(wanted, tmp_path / "out", device="cpu")
    assert "\n" not in str(caught.value)


def test_a_training_that_diverges_leaves_nothing(model_file: Path, tmp_path: Path) -> None:
    wild = plan(model_file, optimizer="sgd", lr=1.0, min_lr=1.0, grad_clip=0.0, epochs=3)
    with pytest.raises(RunError, match=r"diverged: .*take a lower lr or set grad_clip"):
        train_network(wild, tmp_path / "out", device="cpu")
    assert sorted(tmp_path.iterdir()) == [model_file]


def test_two_processes_do_not_train_in_one_folder(model_file: Path, tmp_path: Path) -> None:
    (tmp_path / "out.training").mkdir()
    with (
        FileLock(tmp_path / "out.training" / "lock"),
        pytest.raises(RunError, match="another proc"),
    ):
        train_network(plan(model_file), tmp_path / "out", device="cpu")


def test_a_folder_that_is_not_empty_is_refused(model_file: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").touch()
    with pytest.raises(RunError, match="is not empty"):
        train_network(plan(model_file), tmp_path / "out", device="cpu")


@pytest.mark.slow
def test_training_goes_on_at_another_resolution(model_file: Path, tmp_path: Path) -> None:
    """SReT's Table 10: first weights from a smaller size, no decay, a small constant rate."""
    small = train_network(
        plan(model_file, epochs=4, train_fraction=0.5), tmp_path / "a", device="cpu"
    )
    tree = {"epochs": 2, "train_fraction": 0.5, "weight_decay": 0.0, "lr": 1e-3, "min_lr": 1e-3}
    fine = Recipe.model_validate(tree | {"warmup_epochs": 0.0})
    ends = []
    for name, start in (("b", small), ("c", None)):
        wanted = make_plan(small, recipe=fine, img_size=16, init_from=start)
        seen: list[Entry] = []
        folder = train_network(wanted, tmp_path / name, device="cpu", listener=seen.append)
        assert load(folder)(torch.zeros(1, 1, 16, 16)).shape == (1, 10)
        ends.append(seen[-1]["top1"])
    assert ends[0] > ends[1] + 20


def test_a_trained_network_learns_other_classes(model_file: Path, tmp_path: Path) -> None:
    """All its weights come first but the classifier's."""
    old = train_network(plan(model_file, epochs=1), tmp_path / "old", device="cpu")
    few = DataConfig(name="digits", classes=4)
    wanted = make_plan(old, few, recipe(), epochs=1, init_from=old)
    model, before = fresh_model(wanted.config, 0, torch.device("cpu")), load(old).state_dict()
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    line = f"starts from the weights of {old} without its classifier of 10 other classes"
    assert start_from(model, wanted.config, old).line == line
    for name, tensor in model.state_dict().items():
        source = fresh if name.startswith("head.classifier.") else before
        assert torch.equal(tensor, source[name]), name
    said: list[str] = []
    new = train_network(wanted, tmp_path / "new", device="cpu", notice=said.append)
    assert line in said
    assert line in (new / "README.md").read_text()
    assert load(new)(torch.zeros(1, 1, 8, 8)).shape == (1, 4)


def test_first_weights_of_another_network_are_refused(
    model_file: Path, lrc: ModelConfig, tmp_path: Path
) -> None:
    small = train_network(plan(model_file, epochs=1), tmp_path / "a", device="cpu")
    tree = lrc.model_dump()
    tree["stages"][0]["embed_dim"] = 24
    save_config(ModelConfig.model_validate(tree), tmp_path / "other.yaml")
    wanted = make_plan(tmp_path / "other.yaml", recipe=recipe(), init_from=small)
    with pytest.raises(ConfigError, match="a: weights of another network: "):
        train_network(wanted, tmp_path / "b", device="cpu")
    assert not (tmp_path / "b").exists()
    assert not (tmp_path / "b.training").exists()


@pytest.mark.parametrize(("threads", "taken"), [(None, 1), (3, 3)])
def test_it_trains_with_the_threads_of_a_search_or_those_asked_for(
    threads: int | None, taken: int, model_file: Path, tmp_path: Path
) -> None:
    before, seen = torch.get_num_threads(), []
    torch.set_num_threads(2)
    try:
        train_network(
            plan(model_file, epochs=1),
            tmp_path / "out",
            device="cpu",
            threads=threads,
            listener=lambda _: seen.append(torch.get_num_threads()),
        )
        assert (seen, torch.get_num_threads()) == ([taken], 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kind", ["file", "link inside", "link", "log alone"])
def test_a_folder_that_no_training_wrote_is_left_alone(
    kind: str, model_file: Path, tmp_path: Path
) -> None:
    work, other = tmp_path / "out.training", tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    if kind == "link":
        work.symlink_to(other)
    else:
        work.mkdir()
    if kind == "file":
        (work / "thesis.txt").write_text("mine")
    elif kind == "link inside":
        (work / "lock").symlink_to(other / "thesis.txt")
    elif kind == "log alone":
        (work / "log.jsonl").write_text("mine")
    before = sorted((path, path.is_symlink()) for path in work.iterdir())
    with pytest.raises(RunError, match=r"out\.training: (is a link|holds '.*', which no training)"):
        train_network(make_plan(model_file, epochs=1), tmp_path / "out")
    assert before == sorted((path, path.is_symlink()) for path in work.iterdir())
    assert (other / "thesis.txt").read_text() == "mine"
    assert not (tmp_path / "out").exists()
