"""A baseline as plain layers: model.py computes what the network does, in few lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vitnas.baselines.families import FAMILIES, build_baseline
from vitnas.config.baseline import Baseline
from vitnas.exported.source.plain import plain_layers
from vitnas.exported.write import Content, Written, write_network
from vitnas.nn.weights import weights_bytes

PLAIN = ("vgg", "dwcnn")


def written(family: str, folder: Path, side: int = 28, channels: int = 1) -> Written:
    baseline = Baseline(
        family=family, width=8, image_hw=(side, side), in_chans=channels, num_classes=10
    )
    weights = weights_bytes(build_baseline(baseline))
    content = Content(baseline, weights, f"{baseline.name}: a baseline", formats=("py",))
    return write_network(folder, folder, content)


@pytest.mark.slow
@pytest.mark.parametrize("side", [8, 28, 64])
@pytest.mark.parametrize("family", PLAIN)
def test_it_computes_what_the_network_does(family: str, side: int, tmp_path: Path) -> None:
    """Checked in a process without vitnas and timm, as every export is."""
    done = written(family, tmp_path, side, 3)
    assert done.files == ("model.py",)
    assert done.check is not None
    assert done.check.differences["model.py"] < 1e-6
    text = (tmp_path / "model.py").read_text()
    assert len(text.splitlines()) < 140
    for command in (["format", "--check"], ["check", "--select", "E,F,I"]):
        file = str(tmp_path / "model.py")
        order = [sys.executable, "-m", "ruff", *command, "--isolated", file]
        subprocess.run(order, check=True)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in PLAIN])
def test_blocks_of_timm_are_left_out_with_a_word(family: str, tmp_path: Path) -> None:
    left_out = written(family, tmp_path).left_out
    assert left_out == {"model.py": f"the blocks of {family}-8 are timm's code"}


def test_a_layer_is_a_line() -> None:
    vgg = Baseline(family="vgg", width=4, image_hw=(16, 16), in_chans=1, num_classes=10)
    assert plain_layers(vgg) == [
        "convolution(1, 4, 3)",
        "nn.MaxPool2d(2)",
        "convolution(4, 8, 3)",
        "nn.MaxPool2d(2)",
        "nn.Flatten()",
        "nn.Linear(128, 10)",
    ]
