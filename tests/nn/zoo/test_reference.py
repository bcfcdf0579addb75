"""timm builds a trained baseline by what its config.json says."""

from __future__ import annotations

from pathlib import Path

import pytest
import timm
import torch

import vitnas
from vitnas.baselines.families import FAMILIES, build_baseline
from vitnas.config.baseline import Baseline
from vitnas.errors import ConfigError
from vitnas.exported.write import Content, write_network
from vitnas.nn.weights import weights_bytes
from vitnas.nn.zoo.reference import BASELINE


@pytest.fixture(params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    baseline = Baseline(family=request.param, width=4, image_hw=(16, 16), in_chans=1, num_classes=5)
    weights = weights_bytes(build_baseline(baseline))
    write_network(tmp_path, tmp_path, Content(baseline, weights, baseline.name))
    return tmp_path


def test_timm_loads_the_weights(folder: Path) -> None:
    model = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    images = torch.randn(2, 1, 16, 16)
    assert torch.equal(model(images), vitnas.load(folder)(images))


def test_timm_gives_it_other_classes_and_channels(folder: Path) -> None:
    changes = {"num_classes": 3, "in_chans": 3}
    model = timm.create_model(f"local-dir:{folder}", pretrained=True, **changes).eval()
    assert model(torch.randn(1, 3, 16, 16)).shape == (1, 3)
    before = vitnas.load(folder).state_dict()
    kept = [name for name, tensor in model.state_dict().items() if tensor.equal(before[name])]
    assert len(kept) >= len(before) - 3  # the first kernel, the classifier and its bias


def test_a_wrong_field_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"widht = 4: unknown key .nearest: width"):
        timm.create_model(BASELINE, family="vgg", widht=4)
