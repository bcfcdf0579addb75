"""Images reach model.py as they reached the training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.exported.source.parity import module_of
from tests.nn.networks import vit
from vitnas.config.model import ModelConfig
from vitnas.data.decode import fitted, read_rgb
from vitnas.exported.preprocessing import (
    Preprocessing,
    of_timm,
    trained_on,
    unknown,
)
from vitnas.exported.source.write import model_source

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


def prepared(config: ModelConfig, how: Preprocessing, path: Path) -> Tensor:
    found = module_of(model_source(config, how, "test")).preprocess(path)
    assert isinstance(found, Tensor)
    return found


def picture(path: Path, size: tuple[int, int], mode: str = "RGB") -> Path:
    noise = np.random.default_rng(0).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    Image.fromarray(noise).resize(size, Image.Resampling.BILINEAR).convert(mode).save(path)
    return path


@pytest.mark.parametrize("size", [(60, 40), (32, 32), (20, 70)])
def test_a_folder_of_images(size: tuple[int, int], tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", size)
    found = prepared(vit(), trained_on("imagefolder", MEAN, STD), path)
    pixels = torch.from_numpy(fitted(read_rgb(path), (32, 32))) / 255
    mean, std = (torch.tensor(value)[:, None, None] for value in (MEAN, STD))
    torch.testing.assert_close(found, (pixels - mean) / std)


def test_grey_images_are_scaled(tmp_path: Path) -> None:
    path = picture(tmp_path / "a.png", (16, 16), "L")
    found = prepared(vit(in_chans=1), trained_on("digits", (0.5,), (0.5,)), path)
    assert found.shape == (1, 32, 32)
    assert -1 <= found.min() < found.max() <= 1


def test_grey_of_16_bits_is_not_white(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.fromarray(np.full((32, 32), 32896, dtype=np.uint16)).save(path)
    found = prepared(vit(), Preprocessing((0.0,) * 3, (1.0,) * 3), path)
    torch.testing.assert_close(found, torch.full((3, 32, 32), 128 / 255))


@pytest.mark.parametrize("top", [1, 255])
def test_floats_are_read_as_for_a_training(top: int, tmp_path: Path) -> None:
    path = tmp_path / "a.tif"
    Image.fromarray(np.linspace(0, top, 1024, dtype=np.float32).reshape(32, 32)).save(path)
    found = prepared(vit(), Preprocessing((0.0,) * 3, (1.0,) * 3), path)
    torch.testing.assert_close(found, torch.from_numpy(fitted(read_rgb(path), (32, 32))) / 255)


def test_a_border_is_cut_off(tmp_path: Path) -> None:
    white = Image.new("RGB", (80, 80), "white")
    white.paste("black", (8, 8, 72, 72))
    white.save(tmp_path / "a.png")
    how = Preprocessing((0.0,) * 3, (1.0,) * 3, crop=0.8)
    assert how.border == 0.1
    whole = Preprocessing((0.0,) * 3, (1.0,) * 3)
    assert prepared(vit(), whole, tmp_path / "a.png").max() > 0.9
    assert prepared(vit(), how, tmp_path / "a.png").max() < 0.2
    assert "of 0.8 of it" in how.words


def test_what_is_not_known_is_said() -> None:
    assert "do not say" in unknown(3).remark
    assert len(unknown(1).mean) == 1
    source = model_source(vit(), unknown(3), "test")
    assert "# The weights do not say how images were prepared" in source


def test_timm_says_how_its_weights_were_trained() -> None:
    cfg = {"mean": MEAN, "std": STD, "interpolation": "bilinear", "crop_pct": 0.875}
    assert of_timm(cfg, 3) == Preprocessing(MEAN, STD, "cover", "bilinear", 0.875)
    assert of_timm(cfg | {"crop_mode": "squash"}, 3).fit == "stretch"
    assert of_timm(cfg, 1) == unknown(1)
    assert of_timm({}, 3) == unknown(3)
