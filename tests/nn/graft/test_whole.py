"""The network of a graft.yaml, and its weights at another image size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from vitnas.config.files import validate
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError
from vitnas.nn.graft.whole import build_graft, resized_state, settled
from vitnas.nn.weights import load_state

VIT: dict[str, Any] = {
    "model": "vit_tiny_patch16_224",
    "options": {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3, "depth": 3},
    "grafts": [
        {"mixer": "ska", "blocks": "0"},
        {"mixer": "cska", "blocks": "1", "reattention_blocks": 1, "broad": {"gamma": 0.4}},
    ],
}
SWIN: dict[str, Any] = {
    "model": "swin_tiny_patch4_window7_224",
    "options": {"img_size": 16, "patch_size": 2, "window_size": 4, "embed_dim": 16},
    "grafts": [{"mixer": "ska", "blocks": "stages:0"}, {"mixer": "cska", "blocks": "stages:1"}],
}
SWIN["options"] |= {"depths": [2, 2], "num_heads": [2, 4]}
CAIT: dict[str, Any] = {
    "model": "cait_xxs24_224",
    "options": {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3, "depth": 2},
    "grafts": [{"mixer": "cska"}],
}
CVT: dict[str, Any] = {"model": "cvt_13_32", "options": {}, "grafts": [{"mixer": "ska"}]}
LVT: dict[str, Any] = {
    "model": "lvt",
    "options": {"img_size": 16, "patch_size": 1},
    "grafts": [
        {"mixer": "ska", "blocks": "stages:1"},
        {"mixer": "cska", "blocks": "stages:2", "reattention_blocks": 1},
    ],
}
TREES = {"vit": VIT, "swin": SWIN, "cait": CAIT, "cvt": CVT, "lvt": LVT}


def built(file: GraftFile) -> nn.Module:
    torch.manual_seed(0)
    return build_graft(file).eval()


@pytest.mark.parametrize("name", ["vit", "swin", "cait", "lvt"])
def test_another_size_keeps_all_that_has_no_position(name: str) -> None:
    file = validate(GraftFile, TREES[name])
    source, target = built(file), built(file.changed(img_size=(24, 32)))
    state, before = resized_state(source, target), source.state_dict()
    load_state(target, state)
    assert target(torch.randn(2, 3, 24, 32)).isfinite().all()
    changed = {key for key, value in state.items() if value.shape != before[key].shape}
    assert all("key" in key or key == "pos_embed" for key in changed)
    same = [k for k in state.keys() - changed if "class_key" not in k and "reattention" not in k]
    assert all(torch.equal(state[key], before[key]) for key in same)
    assert bool(changed) != (name == "swin")  # its windows have the same size at any


@pytest.mark.parametrize("name", TREES)
def test_the_same_size_is_the_same_network(name: str) -> None:
    file = validate(GraftFile, TREES[name])
    source, target = built(file), build_graft(file).eval()
    load_state(target, resized_state(source, target))
    images = torch.randn(1, 3, *source.image_hw)
    assert torch.equal(source(images), target(images))


def test_a_static_key_is_a_picture() -> None:
    """One that is the same everywhere stays so; the class token has its own key."""
    file = validate(GraftFile, VIT)
    source, target = built(file), built(file.changed(img_size=32))
    key: Any = source.get_parameter("blocks.0.attn.mixer.static_key")
    with torch.no_grad():
        key[:, 0], key[:, 1:] = 7.0, 3.0
    found = resized_state(source, target)["blocks.0.attn.mixer.static_key"]
    assert found.shape == (3, 65, 8)
    torch.testing.assert_close(found[:, 1:], torch.full((3, 64, 8), 3.0))
    assert found[:, 0].eq(7.0).all()


@pytest.mark.parametrize(("model", "keys"), [("vit_tiny_patch16_224", 65 / 17), ("pvt_v2_b0", 4)])
def test_re_attention_expects_the_maps_of_so_many_keys(model: str, keys: float) -> None:
    """A row of a map has the sum 1, so its entries are smaller where there are more."""
    sizes = {"patch_size": 8} if model.startswith("vit") else {}
    options = {"img_size": 32, "num_classes": 3, **sizes}
    tree = {"model": model, "options": options, "grafts": [{"reattention_blocks": 1}]}
    file = validate(GraftFile, tree)
    source, target = built(file), built(file.changed(img_size=64))
    norm = next(name for name, _ in source.named_buffers() if name.endswith("norm.running_mean"))
    source.get_buffer(norm).fill_(0.5)
    load_state(target, resized_state(source, target))
    torch.testing.assert_close(target.get_buffer(norm) * keys, source.get_buffer(norm))


def test_smaller_windows_resize_the_table_and_the_key() -> None:
    file = validate(GraftFile, SWIN)
    source, target = built(file), built(file.changed(window_size=2))
    load_state(target, resized_state(source, target))
    assert target.get_parameter("layers.0.blocks.0.attn.mixer.static_key").shape == (2, 4, 8)
    assert target(torch.randn(1, 3, 16, 16)).isfinite().all()


@pytest.mark.parametrize("mixer", ["ska", "cska"])
def test_a_network_of_any_size_has_static_keys_for_one(mixer: str) -> None:
    grafts = [{"mixer": mixer, "blocks": "stages:0,3"}]
    tree = {"model": "pvt_v2_b0", "options": {"img_size": 32}, "grafts": grafts}
    file = validate(GraftFile, tree)
    assert settled(file).options.given() == {"img_size": 32, "num_classes": 1000, "in_chans": 3}
    source, target = built(file), built(file.changed(img_size=(64, 32)))
    load_state(target, resized_state(source, target))
    assert target(torch.randn(1, 3, 64, 32)).isfinite().all()
    with pytest.raises(ValueError, match=r"for 64 tokens .8x8., but its input has 128"):
        source(torch.randn(1, 3, 64, 32))


def test_sizes_are_written_out() -> None:
    options = settled(validate(GraftFile, CVT)).options.given()
    assert options == {"img_size": 32, "num_classes": 10, "in_chans": 3}
    wide = settled(validate(GraftFile, VIT).changed(img_size=(16, 32), in_chans=1))
    assert (wide.image_hw, wide.in_chans, wide.num_classes) == ((16, 32), 1, 1000)
    with pytest.raises(ConfigError, match=r"img_size = 3: .*has no token"):
        settled(validate(GraftFile, VIT).changed(img_size=3))
