"""Networks by name, and what is said when there is none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from vitnas.errors import ConfigError
from vitnas.nn.graft import build_network
from vitnas.nn.graft.networks import image_size


def test_timms_and_table_1s() -> None:
    with torch.device("meta"):
        model = build_network("vit_tiny_patch16_224", img_size=[32, 48], num_classes=3)
        assert image_size(model) == (32, 48)
        assert image_size(build_network("cvt_13_32", class_token=True)) == (32, 32)


def test_swin_t_is_as_its_docstring_says() -> None:
    with torch.device("meta"):
        model: Any = build_network("swin_tiny_32", num_classes=7)
    blocks = [block for layer in model.layers for block in layer.blocks]
    assert [layer.output_resolution[0] for layer in model.layers] == [16, 8, 4, 4]
    assert [len(layer.blocks) for layer in model.layers] == [2, 2, 6, 2]
    assert {block.window_size for block in blocks} == {(4, 4)}
    assert [any(block.shift_size) for block in blocks[:4]] == [False, True, False, True]
    assert not any(any(block.shift_size) for block in blocks[4:])  # one window is the picture
    assert model.num_classes == 7


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("vit_tiny_patch16_22", {}, "timm has no such model .nearest: vit_tiny_patch16_224"),
        ("cvt_31_32", {}, "nearest: cvt_13_32"),
        ("hf-hub:some/thing", {}, "timm has no such model"),
        ("", {}, "is required"),
        ("vit_tiny_patch16_224", {"img_siz": 3}, "img_siz = 3: unknown key .nearest: img_size"),
        ("vit_tiny_patch16_224", {"num_heads": 5}, "num_heads 5: dim should be divisible"),
        ("vit_tiny_patch16_224", {"act_layer": "nope"}, "act_layer nope: there is no 'nope'"),
        ("cvt_13_32", {"img_size": 2}, "img_size = 2: too small"),
        ("cvt_13_32", {"depth": 3}, "cannot be built with depth 3"),
        ("cvt_13_32", {"pretrained": True}, "cvt_13_32 has no trained weights"),
    ],
)
def test_one_line_says_what_is_wrong(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        build_network(name, **options)
    assert "\n" not in str(caught.value)


def test_a_network_of_any_size_is_asked_for_one() -> None:
    with torch.device("meta"):
        small: Any = build_network("pvt_v2_b0", img_size=[32, 64], num_classes=3)
        assert image_size(small) == (32, 64)
        assert image_size(build_network("pvt_v2_b0")) == (224, 224)
        convolutions: Any = build_network("mobilenetv3_small_050.lamb_in1k", img_size=64)
        assert image_size(convolutions) == (64, 64)
    small.image_hw = small.pretrained_cfg = None
    with pytest.raises(ConfigError, match="'PyramidVisionTransformerV2': does not say"):
        image_size(small)
