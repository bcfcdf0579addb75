"""The images in memory: splits that do not touch, one normalisation, a test split under lock."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.training.conftest import write_idx
from vitnas import memory
from vitnas.config.data import DataConfig
from vitnas.config.differences import changed_images
from vitnas.config.model import ModelConfig
from vitnas.data import imagefolder
from vitnas.data.listing import list_folder
from vitnas.data.rows import Rows
from vitnas.data.source import split_by_class
from vitnas.errors import ConfigError, DataError, MemoryLimitError
from vitnas.training.data import load_data
from vitnas.training.images import Images
from vitnas.training.split import Split


def test_splits_are_disjoint_and_of_the_asked_size(cifar10_root: Path) -> None:
    images = load_data(DataConfig(name="cifar10", root=str(cifar10_root), val_fraction=0.3), 32)
    assert (len(images.train), len(images.val), len(images.test())) == (70, 30, 30)
    assert images.val.y.bincount().tolist() == [3] * 10
    test = {row.numpy().tobytes() for row in images.test().x}
    scoring = {row.numpy().tobytes() for row in images.val.x}
    assert not test & scoring


def test_the_split_follows_its_seed_alone(digits: Images) -> None:
    torch.manual_seed(5)
    again = load_data(DataConfig(), 8)
    other = load_data(DataConfig(split_seed=1), 8)
    assert torch.equal(digits.val.x, again.val.x)
    assert not torch.equal(digits.val.y, other.val.y)


def test_loading_leaves_global_randomness_alone() -> None:
    before = torch.get_rng_state()
    load_data(DataConfig(), 8)
    assert torch.equal(before, torch.get_rng_state())


def test_training_images_are_normalised_and_the_others_by_the_same_numbers(
    digits: Images,
) -> None:
    x = digits.train.normalise(digits.train.x)
    assert x.dtype == torch.float32
    assert float(x.mean()) == pytest.approx(0, abs=1e-4)
    assert float(x.std()) == pytest.approx(1, abs=1e-3)
    assert torch.equal(digits.test().mean, digits.train.mean)
    assert digits.mean[0] == pytest.approx(float(digits.train.x.float().mean()) / 255, abs=1e-5)
    assert 0 < digits.std[0] < 1


def test_a_constant_channel_does_not_divide_by_zero(folder_root: Path) -> None:
    for path in folder_root.rglob("*.png"):
        path.write_bytes((folder_root / "train" / "red" / "0.png").read_bytes())
    images = load_data(DataConfig(name="imagefolder", root=str(folder_root)), 8)
    assert images.train.normalise(images.train.x).isfinite().all()


def test_too_few_images_to_split_are_refused(folder_root: Path) -> None:
    config = DataConfig(name="imagefolder", root=str(folder_root), val_fraction=0.01)
    with pytest.raises(DataError, match=r"too few for val_fraction 0\.01"):
        load_data(config, 8)


def many(root: Path, number: int) -> None:
    """Images of a class, each of another colour."""
    for index in range(number):
        for name, level in (("blue", 1), ("red", 2)):
            colour = (index, level, 0)
            Image.new("RGB", (8, 8), colour).save(root / "train" / name / f"more{index}.png")


def same(one: Split, other: Split) -> bool:
    return torch.equal(one.x[:], other.x[:]) and torch.equal(one.y, other.y)


def as_kind(root: Path, kind: str) -> dict[str, Any]:
    """The images of a folder as data of another kind."""
    if kind == "tar files":
        for part in ("train", "val"):
            with tarfile.open(root / f"{part}.tar", "w") as tar:
                tar.add(root / part, arcname=".")
            (root / part).rename(root / f"{part} as it was")
    if kind == "torch":
        raw = root / "FashionMNIST" / "raw"
        raw.mkdir(parents=True)
        for part, number in (("train", 200), ("t10k", 30)):
            pixels = np.random.default_rng(number).integers(0, 256, (number, 28, 28))
            write_idx(raw / f"{part}-images-idx3-ubyte", pixels)
            write_idx(raw / f"{part}-labels-idx1-ubyte", np.arange(number) % 10)
        return {"name": "timm", "dataset": "torch/fashion_mnist"}
    return {"name": "imagefolder" if kind == "imagefolder" else "timm"}


@pytest.mark.parametrize("kind", ["imagefolder", "timm's folder", "tar files", "torch"])
@pytest.mark.parametrize("cache", ["on", "off"])
@pytest.mark.parametrize("folds", [1, 3])
def test_a_share_of_data_is_the_share_of_the_whole(
    folder_root: Path, folds: int, cache: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draws are those of data that are read whole; they are of labels alone."""
    many(folder_root, 20)
    if cache == "off":
        monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
    named = as_kind(folder_root, kind)
    config = DataConfig(root=str(folder_root), folds=folds, split_seed=4, **named)
    whole, some = load_data(config, 8), load_data(config, 8, 0.3)
    assert (some.fraction, whole.fraction) == (0.3, 1.0)
    assert len(some.train) == len(whole.train)
    for number in range(folds):
        parts = [images.fold(number) for images in (whole, some)]
        assert same(*(part.val for part in parts))
        for fraction in (0.3, 0.15):
            assert same(*(part.train.subset(fraction, 4) for part in parts))
    assert same(whole.test(), some.test())
    assert not changed_images(some.fingerprint, whole.fingerprint)
    assert not changed_images(whole.fingerprint, some.fingerprint)
    if folds == 1:
        assert isinstance(some.train.pixels, Rows)
        assert len(some.train.pixels.store) == len(some.val) + len(some.train.subset(0.3, 4))


def test_mean_and_deviation_are_those_of_the_images_that_train(folder_root: Path) -> None:
    many(folder_root, 20)
    config = DataConfig(name="imagefolder", root=str(folder_root))
    images = load_data(config, 8, 0.5)
    pixels = images.train.subset(0.5, 0).x[:].double()
    assert images.train.mean.flatten().double() == pytest.approx(pixels.mean(dim=(0, 2, 3)))
    whole = load_data(config, 8).train
    expected = whole.x[:].double().mean(dim=(0, 2, 3))
    assert whole.mean.flatten().double() == pytest.approx(expected)


def test_a_share_of_what_is_in_memory_anyway_changes_nothing(digits: Images) -> None:
    some = load_data(DataConfig(), 8, 0.1)
    assert some.fraction == 1.0
    assert torch.equal(some.train.mean, digits.train.mean)
    assert torch.equal(some.train.x[:], digits.train.x[:])


def test_a_share_that_leaves_too_few_is_refused_before_anything_is_read(
    folder_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imagefolder, "set_of", lambda *_: pytest.fail("read an image"))
    config = DataConfig(name="imagefolder", root=str(folder_root))
    with pytest.raises(ConfigError, match="leaves less than two of 12") as caught:
        load_data(config, 8, 0.01)
    assert caught.value.address == "train_fraction"


def test_only_what_is_used_has_to_fit_into_memory(
    folder_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(folder_root, 100)
    monkeypatch.setenv("VITNAS_IMAGE_CACHE", "off")
    config = DataConfig(name="imagefolder", root=str(folder_root), val_fraction=0.1)
    monkeypatch.setattr(memory, "free_memory", lambda: 60 * 3 * 64 * 64)
    with pytest.raises(MemoryLimitError, match="221 images take"):
        load_data(config, 64)
    assert len(load_data(config, 64, 0.1).train) == 195


def test_the_classes_that_are_there_are_named(folder_root: Path, tiny_config: ModelConfig) -> None:
    """An empty folder is no class where timm opens them, and a user looks for it."""
    (folder_root / "train" / "empty").mkdir()
    images = load_data(DataConfig(name="timm", root=str(folder_root)), tiny_config.img_size)
    changes = {"num_classes": 4, "in_chans": 3}
    wrong = ModelConfig.model_validate(tiny_config.model_dump() | changes)
    with pytest.raises(ConfigError) as caught:
        images.check_fits(wrong)
    rule = "these images of timm have 3: ['blue', 'green', 'red']"
    assert str(caught.value) == f"num_classes = 4: {rule} (nearest: 3)"
    images.check_fits(wrong.model_copy(update={"num_classes": 3}))


@pytest.mark.parametrize("is_scored", [True, False])
def test_a_broken_file_is_neither_trained_nor_scored_on(folder_root: Path, is_scored: bool) -> None:
    """The others are drawn as if it could be read."""
    many(folder_root, 200)
    config = DataConfig(name="imagefolder", root=str(folder_root))
    files = list_folder(config).train
    labels = imagefolder.labels_of(files)
    train, val = split_by_class(labels, config.val_fraction, 0)
    drawn = train[split_by_class(labels[train], 0.5, 0)[1]]
    Path(files[int((val if is_scored else drawn)[5])].path).write_bytes(b"no image")
    images = load_data(config, 8, 0.5)
    assert len(images.skipped) == 1
    assert len(images.val) == len(val) - is_scored
    assert len(images.train.subset(0.5, 0)) == len(drawn) - (not is_scored)
    assert len(images.train) == len(train)
    images.val.x[:], images.train.subset(0.5, 0).x[:]


def test_all_train_where_the_data_s_own_images_score(folder_root: Path) -> None:
    held = load_data(DataConfig(name="imagefolder", root=str(folder_root)), 8)
    data = DataConfig.model_validate(
        {"name": "imagefolder", "root": str(folder_root), "val_split": "val"}
    )
    images = load_data(data, 8)
    assert (len(images.train), len(images.val), images.has_test) == (15, 6, False)
    assert torch.equal(images.val.x, held.test().x)
    assert torch.equal(images.val.mean, images.train.mean)
    few = load_data(data, 8, fraction=0.4)
    assert len(few.train.subset(0.4, 0)) == 6
    assert torch.equal(few.val.x, images.val.x)
