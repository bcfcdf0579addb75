"""The images in memory: splits that do not touch, one normalisation, a test split under lock."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from vitnas.config.model import ModelConfig
from vitnas.config.training import DataConfig
from vitnas.errors import ConfigError, DataError
from vitnas.training.data import Images, load_data


def test_splits_are_disjoint_and_of_the_asked_size(cifar10_root: Path) -> None:
    images = load_data(DataConfig(name="cifar10", root=str(cifar10_root), val_fraction=0.3), 32)
    assert (len(images.train), len(images.val), len(images.test())) == (70, 30, 30)
    assert images.val.y.bincount().tolist() == [3] * 10
    test = {row.numpy().tobytes() for row in images.test().x}
    scoring = {row.numpy().tobytes() for row in images.val.x}
    assert not test & scoring


def test_folds_score_on_images_apart_and_train_on_all_others(digits: Images) -> None:
    """Five folds of a fifth: every image scores once."""
    whole = sorted(row.numpy().tobytes() for row in torch.cat([digits.train.x, digits.val.x]))
    scoring: list[bytes] = []
    for number in range(5):
        fold = digits.fold(number)
        held = [row.numpy().tobytes() for row in fold.val.x]
        trained = [row.numpy().tobytes() for row in fold.train.x]
        assert abs(len(held) - len(digits.val)) <= 5  # whole images of each class
        assert sorted(held + trained) == whole
        assert torch.equal(fold.train.mean, digits.train.mean)
        scoring += held
    assert len(scoring) >= len(whole) - 5
    assert len(set(scoring)) >= len(set(whole)) - 5
    assert digits.fold(0) is digits
    assert torch.equal(digits.fold(2).val.x, digits.fold(2).val.x)


def test_too_few_images_for_a_fold_are_an_error(digits: Images) -> None:
    few = replace(
        digits, train=digits.train.of(torch.arange(2)), val=digits.val.of(torch.arange(1))
    )
    with pytest.raises(DataError, match="digits: 3 training images are too few for so many folds"):
        few.fold(1)


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


def test_the_test_split_is_no_public_field() -> None:
    public = {item.name for item in fields(Images) if not item.name.startswith("_")}
    assert "test" not in public
    assert "test" not in repr(load_data(DataConfig(), 8)).lower()


def test_no_test_images_is_an_error_only_when_asked_for(folder_root: Path) -> None:
    (folder_root / "val").rename(folder_root / "unused")
    images = load_data(DataConfig(name="imagefolder", root=str(folder_root)), 8)
    assert not images.has_test
    with pytest.raises(DataError, match="no test images"):
        images.test()


def test_too_few_images_to_split_are_refused(folder_root: Path) -> None:
    config = DataConfig(name="imagefolder", root=str(folder_root), val_fraction=0.01)
    with pytest.raises(DataError, match=r"too few for val_fraction 0\.01"):
        load_data(config, 8)


def test_a_subset_is_stratified_and_repeatable(digits: Images) -> None:
    half = digits.train.subset(0.5, seed=3)
    assert torch.equal(half.x, digits.train.subset(0.5, seed=3).x)
    whole = digits.train.y.bincount()
    assert (half.y.bincount() - whole / 2).abs().max() <= 0.5
    assert digits.train.subset(1.0, seed=3) is digits.train


def test_moving_to_where_they_are_shares_memory(digits: Images) -> None:
    moved = digits.to("cpu")
    assert moved.train.x.data_ptr() == digits.train.x.data_ptr()
    assert moved.test() is digits.test()


@pytest.mark.parametrize(
    ("field", "value"), [("num_classes", 5), ("in_chans", 3), ("img_size", 16)]
)
def test_a_network_for_other_images_is_refused(
    digits: Images, tiny_config: ModelConfig, field: str, value: int
) -> None:
    digits.check_fits(tiny_config)
    other = ModelConfig.model_validate(tiny_config.model_dump() | {field: value})
    with pytest.raises(ConfigError) as caught:
        digits.check_fits(other)
    assert caught.value.address == field
