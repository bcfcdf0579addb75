"""Images that stay in their folders: the same split, random by image, whoever reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.conftest import fill_folder
from vitnas.config.data import Augment, DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe, load_recipe, recipe_names
from vitnas.errors import DataError, RunError
from vitnas.training import folders
from vitnas.training.augment import augment_batch
from vitnas.training.data import load_data
from vitnas.training.device import own_all_randomness
from vitnas.training.final import FinalTraining
from vitnas.training.folders import Files, _Augmented, open_folder
from vitnas.training.plan import Plan
from vitnas.training.proxy import fresh_model
from vitnas.training.rand_augment import RandAugment
from vitnas.training.train import _plain_errors, train_network

RANDOM = Recipe(rand_augment="rand-m9-mstd0.5-inc1", batch_size=4, epochs=1, lr=1e-3)


def dealt(files: Files, recipe: Recipe = RANDOM, seed: int = 5, workers: int = 0) -> list[bytes]:
    order = torch.Generator().manual_seed(seed)
    return [
        x.numpy().tobytes() + y.numpy().tobytes()
        for x, y in files.batches(recipe, 3, order, seed, workers)
    ]


@pytest.fixture
def data(folder_root: Path) -> DataConfig:
    return DataConfig(name="imagefolder", root=str(folder_root))


def test_it_is_split_as_in_memory(data: DataConfig) -> None:
    images, files = open_folder(data, (8, 8))
    memory = load_data(data, 8)
    assert torch.equal(images.val.x, memory.val.x)
    assert torch.equal(images.test().x, memory.test().x)
    assert torch.equal(images.train.x, memory.train.x)
    assert images.classes == memory.classes
    plain = Recipe(augment="none")
    (batch,) = files.batches(plain, 1, torch.Generator().manual_seed(0), 0, 0)
    order = torch.randperm(len(files), generator=torch.Generator().manual_seed(0))
    assert torch.equal(batch[0], memory.train.x[order])
    assert torch.equal(batch[1], memory.train.y[order])


@pytest.mark.parametrize("changes", [{"val_split": "val"}, {"classes": ["red", "blue"]}])
def test_own_images_and_some_classes_are_those_in_memory(
    data: DataConfig, changes: dict[str, Any]
) -> None:
    chosen = DataConfig.model_validate({"name": data.name, "root": data.root, **changes})
    images, files = open_folder(chosen, (8, 8))
    memory = load_data(chosen, 8)
    assert torch.equal(images.val.x, memory.val.x)
    assert torch.equal(images.val.y, memory.val.y)
    assert len(files) == len(memory.train)
    assert images.has_test == memory.has_test
    assert images.classes == images.names == memory.classes


def test_mean_and_deviation_are_those_of_all_classes(
    data: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = open_folder(data, (8, 8))[0]
    monkeypatch.setattr(folders, "_SAMPLE", 9)
    some = open_folder(data, (8, 8))[0]  # 9 of 12 images, which are ordered by class
    assert torch.equal(some.train.y, torch.tensor([0] * 3 + [1] * 3 + [2] * 3))
    assert some.mean == pytest.approx(whole.mean, rel=1e-6)


def test_a_share_of_each_class_is_used(data: DataConfig) -> None:
    _, files = open_folder(data, (8, 8), 0.5)
    classes = [file.number for file in files.files]
    assert sorted(classes) == [0, 0, 1, 1, 2, 2]


def test_augmentation_is_the_seeds_alone_whoever_reads(data: DataConfig) -> None:
    files = open_folder(data, (16, 16))[1]
    before = torch.get_rng_state()
    first = dealt(files)
    assert torch.equal(torch.get_rng_state(), before)
    assert dealt(files) == first
    assert dealt(files, seed=6) != first
    assert dealt(files, Recipe(augment="none")) != first


@pytest.mark.parametrize("kind", ["none", "shift", "shift_flip"])
def test_rand_augment_brings_no_crop_and_no_mirror(data: DataConfig, kind: Augment) -> None:
    files = open_folder(data, (16, 16))[1]
    plain, recipe = Recipe(augment="none"), RANDOM.model_copy(update={"augment": kind})
    assert dealt(files, recipe) == dealt(files, plain)
    x = torch.randint(256, (4, 3, 16, 16), dtype=torch.uint8)
    draws = [torch.Generator().manual_seed(1) for _ in range(2)]
    with own_all_randomness(0, torch.device("cpu")):
        found = files.augment(recipe, x, draws[0])
    with own_all_randomness(0, torch.device("cpu")):
        policy = RandAugment(str(recipe.rand_augment))
        assert torch.equal(found, policy(augment_batch(kind, x, draws[1], 0.35)))


@pytest.mark.slow
def test_processes_read_the_same(data: DataConfig) -> None:
    files = open_folder(data, (16, 16))[1]
    assert dealt(files, workers=2) == dealt(files)


def test_a_network_trains_on_them(tiny_config: ModelConfig, data: DataConfig) -> None:
    config = ModelConfig.model_validate(
        tiny_config.model_dump() | {"num_classes": 3, "in_chans": 3}
    )
    images, files = open_folder(data, (8, 8))
    recipe = RANDOM.model_copy(update={"epochs": 8, "random_erasing": 0.25, "lr": 3e-3})
    model = fresh_model(config, 0, torch.device("cpu"))
    training = FinalTraining(model, recipe, images, 0, files=files)
    losses = [result.loss for result in training]
    assert losses[-1] < losses[0]
    assert training._steps == 3


def test_an_image_that_is_damaged_after_the_start_is_named(data: DataConfig) -> None:
    files = open_folder(data, (8, 8))[1]
    Path(files.files[3].path).write_bytes(b"no image")
    with pytest.raises(DataError, match="not a readable image"):
        dealt(files)


def test_the_last_epochs_read_images_as_they_are_scored(
    tiny_config: ModelConfig, data: DataConfig
) -> None:
    images, files = open_folder(data, (8, 8))
    recipe = Recipe(epochs=2, no_augment_epochs=1, augment="crop_flip", color_jitter=0.4)
    config = tiny_config.model_copy(update={"in_chans": 3, "num_classes": images.num_classes})
    model = fresh_model(config, 0, torch.device("cpu"))
    training = FinalTraining(model, recipe, images, 0, files=files)
    plain = images.train.normalise(images.train.x).flatten(1).sort(0)[0]
    for epoch, is_plain in ((1, False), (2, True)):
        shown = torch.cat([batch.x for batch in training._batches(epoch)])
        assert torch.equal(shown.flatten(1).sort(0)[0], plain) == is_plain


@pytest.mark.slow
def test_so_it_is_where_processes_read(data: DataConfig) -> None:
    files = open_folder(data, (8, 8))[1]
    Path(files.files[3].path).unlink()
    with pytest.raises(DataError, match=r"^\S+: not a readable image \(No such file.*\)$"):
        dealt(files, workers=2)


def test_a_process_that_reads_and_is_killed_is_one_line(tmp_path: Path) -> None:
    line = "a process that reads images was killed"
    with pytest.raises(RunError, match=line), _plain_errors(Recipe(), tmp_path):
        raise RuntimeError("DataLoader worker (pid 12) is killed by signal: Killed. ")
    with pytest.raises(RuntimeError, match=r"^another$"), _plain_errors(Recipe(), tmp_path):
        raise RuntimeError("another")


def test_an_error_of_the_augmentation_is_not_a_damaged_image(data: DataConfig) -> None:
    def broken(image: object) -> None:
        raise ValueError("no such bits")

    with pytest.raises(ValueError, match=r"^no such bits$"):
        _Augmented(open_folder(data, (8, 8))[1], broken, 0)[0]


@pytest.mark.parametrize("policy", ["rand-m10-inc1", "rand-m15-inc1-mmax20", "rand-m0"])
def test_a_posterized_image_keeps_a_bit(data: DataConfig, policy: str) -> None:
    files = open_folder(data, (8, 8))[1]
    for seed in range(20):
        dealt(files, Recipe(rand_augment=policy), seed)


@pytest.fixture(scope="module")
def shared_data(tmp_path_factory: pytest.TempPathFactory) -> DataConfig:
    root = tmp_path_factory.mktemp("images")
    fill_folder(root)
    return DataConfig(name="imagefolder", root=str(root))


@pytest.fixture(scope="module")
def recurrent(tiny_config: ModelConfig) -> ModelConfig:
    """Two passes with a map each, so that every recipe can train it."""
    tree = tiny_config.model_dump() | {"num_classes": 3, "in_chans": 3}
    tree["stages"][1]["groups"] = "[1,1]"
    return ModelConfig.model_validate(tree)


@pytest.fixture(scope="module")
def teacher(
    recurrent: ModelConfig, shared_data: DataConfig, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    plan = Plan(recurrent, shared_data, Recipe(epochs=1, batch_size=4))
    return train_network(plan, tmp_path_factory.mktemp("teacher") / "net", device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("name", recipe_names())
def test_a_folder_trains_by_every_shipped_recipe(
    name: str, recurrent: ModelConfig, shared_data: DataConfig, teacher: Path, tmp_path: Path
) -> None:
    shipped = load_recipe(name)
    asked = {"teacher": str(teacher)} if shipped.distill.teacher else {}
    distill = shipped.distill.model_copy(update=asked)
    changes = {"epochs": 1, "batch_size": 4, "distill": distill}
    log: list[dict[str, Any]] = []
    plan = Plan(recurrent, shared_data, shipped.model_copy(update=changes), name)
    train_network(plan, tmp_path / "out", device="cpu", listener=log.append)
    assert [line["epoch"] for line in log] == [1]
