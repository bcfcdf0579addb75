"""Predictions are those of model.py, in the order of the files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vitnas
from vitnas.errors import ConfigError, DataError
from vitnas.exported.preprocessing import Preprocessing, unknown
from vitnas.scoring.classifier import Classifier
from vitnas.scoring.images import BATCH
from vitnas.scoring.predict import assumed


def digits_at(place: Path, number: int) -> list[Path]:
    from sklearn.datasets import load_digits

    place.mkdir(exist_ok=True)
    paths = [place / f"{index:03}.png" for index in range(number)]
    for path, image in zip(paths, load_digits().images, strict=False):
        Image.fromarray((image * 15.9).astype(np.uint8)).resize((20, 20)).save(path)
    return paths


@pytest.mark.slow
def test_they_are_what_model_py_prints(digits_net: Path, tmp_path: Path) -> None:
    paths = digits_at(tmp_path, 5)
    command = [sys.executable, str(digits_net / "model.py"), *map(str, paths)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = []
    for one in vitnas.predict(digits_net, paths, top=5):
        lines.append(str(one.file))
        lines += [f"  {share:7.2%}  {name}" for name, share in one.classes]
    assert printed.splitlines() == lines


def test_a_broken_file_is_skipped_and_the_order_kept(colours_net: Path, tmp_path: Path) -> None:
    paths = digits_at(tmp_path, BATCH + 3)
    paths[1].write_bytes(b"no image")
    paths[-1].unlink()
    found = list(vitnas.predict(colours_net, paths, top=9))
    assert [one.file for one in found] == paths
    assert [one.file for one in found if one.problem] == [paths[1], paths[-1]]
    for one in found:
        assert len(one.classes) == (0 if one.problem else 3)  # at most all
    names, shares = zip(*found[0].classes, strict=True)
    assert set(names) == {"blue", "green", "red"}
    assert sum(shares) == pytest.approx(1)
    assert list(shares) == sorted(shares, reverse=True)


def test_values_that_the_weights_do_not_say_are_told() -> None:
    """As of a checkpoint that was converted: config.json has usual values, and says so."""

    def net(how: Preprocessing | None) -> Classifier:
        cpu = torch.device("cpu")
        return Classifier("net", "PyTorch", torch.nn.Identity(), 1, (8, 8), 2, cpu, how)

    assert assumed(net(Preprocessing((0.3,), (0.2,)))) == ""
    for how in (None, unknown(1)):
        line = assumed(net(how))
        assert line.startswith("net: does not say how images are prepared; they are scaled to ")
        assert line.endswith("with mean 0.5 and deviation 0.5")


def test_a_folder_stands_for_its_images(digits_net: Path, tmp_path: Path) -> None:
    paths = digits_at(tmp_path / "images", 3)
    found = [one.file for one in vitnas.predict(digits_net, [paths[0], tmp_path])]
    assert found == [paths[0], *paths]


@pytest.mark.slow
def test_a_program_predicts_without_the_folder_s_config(
    digits_program: Path, tmp_path: Path
) -> None:
    paths = digits_at(tmp_path / "images", 3)
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("model.pt2", "config.json"):
        shutil.copy(digits_program / name, alone)
    one, other = (
        [found.classes[0][0] for found in vitnas.predict(model, paths)]
        for model in (digits_program, alone / "model.pt2")
    )
    assert one == other


def test_mistakes_are_said_before_anything_is_predicted(digits_net: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--top = 0: must be 1 or more"):
        vitnas.predict(digits_net, [], top=0)
    with pytest.raises(DataError, match="has no image"):
        vitnas.predict(digits_net, [tmp_path])
