"""Which images score: of a folder's split, and of a data set."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.training.conftest import fill_folder
from vitnas.config.data import DataConfig
from vitnas.data.place import root_of
from vitnas.errors import DataError
from vitnas.exported.preprocessing import unknown
from vitnas.scoring.data import LabelledFiles, Part, of_data_set, of_folder
from vitnas.scoring.load import load_classifier
from vitnas.training.folders import open_folder


def files_of(root: Path, part: Part = "test", **fields: object) -> LabelledFiles:
    return of_folder(DataConfig(name="imagefolder", root=str(root), **fields), part)  # type: ignore[arg-type]


def places(found: LabelledFiles, root: Path) -> set[str]:
    return {str(Path(file.path).parent.relative_to(root)) for file in found.files}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill_folder(tmp_path)
    return tmp_path


def test_val_is_the_test_split_where_there_is_no_other(root: Path) -> None:
    assert places(files_of(root), root) == {"val/blue", "val/green", "val/red"}
    shutil.copytree(root / "val", root / "test")
    assert places(files_of(root), root) == {"test/blue", "test/green", "test/red"}
    assert places(files_of(root, "val"), root) == {"val/blue", "val/green", "val/red"}


def test_without_val_a_share_of_train_is_held_out(root: Path) -> None:
    shutil.rmtree(root / "val")
    found = files_of(root, "val", val_fraction=0.4)
    assert len(found.files) == 6
    assert places(found, root) == {"train/blue", "train/green", "train/red"}
    assert found.words == f"held out of {root / 'train'}"


def test_a_broken_image_leaves_those_that_are_held_out_as_they_are(root: Path) -> None:
    """It had shifted the split: images that a network trained on scored it."""
    shutil.rmtree(root / "val")
    for index in range(5, 105):
        Image.new("RGB", (8, 8)).save(root / "train" / "green" / f"{index}.png")
    (root / "train" / "green" / "1.png").write_bytes(b"no image")
    config = DataConfig(name="imagefolder", root=str(root))
    found = files_of(root, "val")
    _, trained = open_folder(config, (8, 8))
    paths = {file.path for file in trained.files}
    assert not paths & {file.path for file in found.files}
    assert len(paths) + len(found.files) == 114


def test_a_folder_of_classes_is_a_split_itself(root: Path) -> None:
    found = files_of(root / "val")
    assert len(found.files) == 6
    assert found.classes == ("blue", "green", "red")


def test_classes_are_numbered_as_in_train(root: Path) -> None:
    shutil.rmtree(root / "val" / "blue")
    found = files_of(root)
    assert found.classes == ("blue", "green", "red")
    assert [file.number for file in found.files] == [1, 1, 2, 2]


def test_some_classes_are_chosen(root: Path) -> None:
    assert files_of(root, classes=("red", "blue")).classes == ("blue", "red")


def test_what_is_not_there_is_said(root: Path) -> None:
    shutil.rmtree(root / "val")
    with pytest.raises(DataError, match="neither test/ nor val/; --score-on val scores images"):
        files_of(root)
    (root / "test" / "pink").mkdir(parents=True)
    with pytest.raises(DataError, match=r"test: class 'pink' is not in .*train"):
        files_of(root)
    (root / "test" / "pink").rename(root / "test" / "red")
    with pytest.raises(DataError, match="has no image of these classes"):
        files_of(root)
    shutil.rmtree(root / "train")
    with pytest.raises(DataError, match="neither val/ nor train/"):
        files_of(root, "val")
    (root / "empty").mkdir()
    with pytest.raises(DataError, match="empty: has no class folders"):
        files_of(root / "empty")


def test_batches_are_the_images_in_their_order(root: Path) -> None:
    found = files_of(root)
    pixels, labels = zip(*found.batches(unknown(3), 3, (4, 4)), strict=True)
    assert torch.cat(labels).tolist() == [0, 0, 1, 1, 2, 2]
    colours = torch.cat(pixels).float().mean(dim=(2, 3)).div(255).round().tolist()
    assert colours == [[0, 0, 1]] * 2 + [[0, 1, 0]] * 2 + [[1, 0, 0]] * 2


@pytest.mark.slow
def test_a_data_set_s_images_are_scaled_to_the_network(digits_net: Path) -> None:
    classifier = load_classifier(digits_net)
    found = of_data_set(DataConfig(), "test", classifier)
    how = found.default(1)
    batches = list(found.batches(how, 1, (16, 16)))
    assert sum(len(labels) for _, labels in batches) == 359
    assert batches[0][0].shape[1:] == (1, 16, 16)
    assert how.mean == pytest.approx(classifier.preprocessing.mean)  # type: ignore[union-attr]


def test_a_data_set_that_scores_on_its_test_images_has_them(digits_net: Path) -> None:
    config = DataConfig(val_split="test")
    found = of_data_set(config, "test", load_classifier(digits_net))
    assert (len(found.split), found.words) == (359, "test images of digits")


def test_the_root_is_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        root_of(DataConfig(name="imagefolder", root=str(tmp_path / "no")))
    with pytest.raises(DataError, match="no such folder"):
        files_of(tmp_path / "no")
