"""timm builds a grafted network by what its config.json says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import timm
import torch

import vitnas
from vitnas.errors import ConfigError
from vitnas.exported.grafts import graft_named
from vitnas.nn.zoo.grafted import GRAFTED

NAME = "vit_tiny_patch16_224"
OPTIONS = {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3, "depth": 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    graft_named(NAME, {"mixer": "cska", "blocks": "1"}, OPTIONS, to=tmp_path / "g")
    return tmp_path / "g"


def test_timm_loads_the_weights(folder: Path) -> None:
    model = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(model(images), vitnas.load(folder)(images))
    assert model.pretrained_cfg["mean"] == [0.5, 0.5, 0.5]


def test_timm_gives_it_another_head_size_and_channels(folder: Path) -> None:
    changes = {"num_classes": 3, "in_chans": 1, "img_size": 32}
    model = timm.create_model(f"local-dir:{folder}", pretrained=True, **changes).eval()
    assert model(torch.randn(1, 1, 32, 32)).shape == (1, 3)
    before = vitnas.load(folder).state_dict()
    for name, tensor in model.state_dict().items():
        if tensor.shape == before[name].shape and "class_key" not in name:
            assert torch.equal(tensor, before[name]), name


def test_timm_asks_it_for_its_features(folder: Path) -> None:
    images = torch.randn(2, 3, 16, 16)
    net = timm.create_model(f"local-dir:{folder}", pretrained=True, features_only=True).eval()
    whole = vitnas.load(folder).eval()
    for level, block in zip(net(images), blocks_of(whole, images), strict=True):
        torch.testing.assert_close(level, block, rtol=0, atol=0)
    assert net.feature_info.channels() == [24, 24]
    first = timm.create_model(f"local-dir:{folder}", features_only=True, out_indices=(0,))
    assert [tuple(level.shape) for level in first(images)] == [(2, 24, 4, 4)]


def blocks_of(network: Any, images: torch.Tensor) -> Any:
    return network.forward_intermediates(images, intermediates_only=True)


def test_broad_attention_stays_where_features_are_asked_for() -> None:
    """Its hooks collect in every block, and the last block alone uses what they have collected."""
    graft = {"broad": {"gamma": 0.4}}
    options = {"options": OPTIONS, "grafts": [graft], "features_only": True}
    net = timm.create_model(GRAFTED, model=NAME, out_indices=(0,), **options).eval()
    assert len(net.model.blocks) == 2
    last = timm.create_model(GRAFTED, model=NAME, out_indices=(1,), **options).eval()
    images = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(last(images)[0], blocks_of(last.model, images)[1])


def test_a_network_that_gives_no_features_is_one_line() -> None:
    message = "features_only = true: LVT gives no levels"
    with pytest.raises(ConfigError, match=message):
        timm.create_model(GRAFTED, model="lvt", grafts=[{"mixer": "ska"}], features_only=True)


def test_a_wrong_option_is_one_line(folder: Path) -> None:
    args = json.loads((folder / "config.json").read_text())["model_args"]
    with pytest.raises(ConfigError, match=r"options.img_siz = 8: unknown key .nearest: img_size"):
        timm.create_model(GRAFTED, **args, img_siz=8)
