"""Images are what they say: folds, classes and parts of them, where they lie, whom they fit."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.data.source import split_by_class
from vitnas.errors import ConfigError, DataError
from vitnas.training.data import load_data
from vitnas.training.images import Images, _fits


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


@pytest.mark.parametrize("each", [3, 4, 8])
def test_small_classes_are_an_error_or_have_all_folds(digits: Images, each: int) -> None:
    """A fifth of three images is rounded to one, so the third fold leaves nothing."""
    whole = digits.train + digits.val
    few = torch.cat([torch.where(whole.y == label)[0][:each] for label in range(10)])
    stay, cut = split_by_class(whole.y[few], 0.2, 0)
    images = replace(digits, train=whole.of(few[stay]), val=whole.of(few[cut]))
    for number in range(5):
        try:
            fold = images.fold(number)
        except DataError as error:
            assert "training images are too few for so many folds" in str(error)  # noqa: PT017
        else:
            assert len(fold.val) > 0
    if each == 3:
        with pytest.raises(DataError, match="30 training images are too few for so many folds"):
            images.fold(3)


def test_some_classes_with_new_numbers(digits: Images) -> None:
    part = digits.with_classes(5, 1.0)
    assert part.classes == ("0", "2", "4", "6", "8")
    assert part.num_classes == 5
    for split, whole in ((part.train, digits.train), (part.val, digits.val)):
        assert torch.equal(split.x, whole.x[whole.y % 2 == 0])
        assert torch.equal(split.y, whole.y[whole.y % 2 == 0] // 2)
    assert len(part.test()) < len(digits.test())
    assert torch.equal(part.train.mean, digits.train.mean)


def test_a_share_of_some_classes_is_part_of_the_share_of_all(digits: Images) -> None:
    part = digits.with_classes(3, 0.3)
    whole = digits.train.subset(0.3, digits.split_seed)
    kept = torch.isin(whole.y, torch.tensor([0, 3, 6]))
    assert torch.equal(part.train.x, whole.x[kept])
    assert set(part.train.y.tolist()) == {0, 1, 2}


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


def test_moving_to_where_they_are_shares_memory(digits: Images) -> None:
    moved = digits.to("cpu")
    assert moved.train.x.data_ptr() == digits.train.x.data_ptr()
    assert moved.test() is digits.test()


def test_another_normalisation_is_that_of_all_splits(digits: Images) -> None:
    found = digits.normalised_by({"mean": (0.5,), "std": (0.25,)})
    assert (found.mean, found.std) == ((0.5,), (0.25,))
    for before, after in (
        (digits.train, found.train),
        (digits.val, found.val),
        (digits.test(), found.test()),
    ):
        pixels = after.normalise(after.pixels[:3])
        torch.testing.assert_close(pixels, (before.pixels[:3] / 255 - 0.5) / 0.25)
    assert digits.mean != (0.5,), "nothing is changed in place"


@pytest.mark.parametrize("stated", [{}, {"mean": (0.5,) * 3, "std": (0.2,) * 3}, {"mean": (0.5,)}])
def test_a_normalisation_that_does_not_fit_is_left(
    digits: Images, stated: dict[str, tuple[float, ...]]
) -> None:
    assert digits.normalised_by(stated) is digits


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


def test_classes_that_are_only_numbered_have_no_names(digits: Images) -> None:
    assert digits.classes == tuple("0123456789")
    assert digits.names == ()


@pytest.mark.parametrize(
    ("free", "share", "fits"), [(100, 1.0, True), (100, 0.25, False), (30, 1.0, False)]
)
def test_images_are_copied_to_a_device_that_has_room(
    digits: Images, monkeypatch: pytest.MonkeyPatch, free: int, share: float, fits: bool
) -> None:
    """Of a card of a hundred units, digits take twenty."""
    unit = (digits.train.size + digits.val.size) / 20
    told = (free * unit, 100 * unit)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: told)
    assert _fits(digits, torch.device("cuda"), share) == fits
