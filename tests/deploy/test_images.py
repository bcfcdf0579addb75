"""The images of a check."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.nn.networks import ready, vit
from tests.training.conftest import fill_folder
from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.deploy.images import Pictures, pictures_for
from vitnas.errors import DataError
from vitnas.exported.preprocessing import trained_on
from vitnas.scoring.classifier import Classifier
from vitnas.training.data import load_data

DIGITS = DataConfig(name="digits")


def classifier(config: ModelConfig, data: str = "digits") -> Classifier:
    channels = config.in_chans
    return Classifier(
        "net",
        "PyTorch",
        ready(config),
        channels,
        config.image_hw,
        config.num_classes,
        torch.device("cpu"),
        trained_on(data, (0.3,) * channels, (0.4,) * channels),
    )


@pytest.fixture(scope="module")
def pictures() -> Pictures:
    net = classifier(vit(img_size=8, in_chans=1, num_classes=10, stem={"stride": 4}))
    return pictures_for(net, DIGITS, "test")


def test_calibration_images_train_and_score_nothing(pictures: Pictures) -> None:
    assert len(pictures.calibration) == 256
    assert len(pictures.training) == 512
    images = load_data(DIGITS, 8)
    bytes_of = [
        (255 * (part * 0.4 + 0.3)).round().to(torch.uint8).flatten(1)
        for part in (pictures.calibration, pictures.training)
    ]
    drawn = {tuple(row) for part in bytes_of for row in part.tolist()}
    train = {tuple(row) for row in images.train.x.flatten(1).tolist()}
    val = {tuple(row) for row in images.val.x.flatten(1).tolist()}
    assert drawn <= train
    assert not drawn & (val - train)


def test_all_functions_see_the_same_images(pictures: Pictures) -> None:
    net = classifier(vit(img_size=8, in_chans=1, num_classes=10, stem={"stride": 4}))
    one, other = pictures.answers([net.ask, lambda images: -net.ask(images)])
    assert len(one) == len(other) == 359
    assert (one.labels == other.labels).all()
    assert (one.predicted != other.predicted).any()


def test_a_folder_s_held_out_images_do_not_calibrate(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    net = classifier(vit(img_size=16, in_chans=3, num_classes=3, stem={"stride": 8}), "imagefolder")
    data = DataConfig(name="imagefolder", root=str(tmp_path))
    found = pictures_for(net, data, "test")
    assert found.shape == (3, 16, 16)
    held = load_data(data, 16)
    assert len(found.calibration) + len(found.training) == len(held.train)


def test_no_images_to_calibrate_on_is_one_line(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    for path in (tmp_path / "train").rglob("*.*"):
        path.unlink()
    for path in sorted((tmp_path / "train").rglob("*"), reverse=True):
        path.rmdir()
    (tmp_path / "train").rmdir()
    net = classifier(vit(img_size=16, in_chans=3, num_classes=3, stem={"stride": 8}), "imagefolder")
    data = DataConfig(name="imagefolder", root=str(tmp_path))
    with pytest.raises(DataError, match="has no train/, so there are no training images to cal"):
        pictures_for(net, data, "test")
