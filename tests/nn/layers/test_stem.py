"""Stems."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tests.config.trees import space_of
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn.layers.stem import Stem
from vitnas.nn.layers.tokens import to_picture


def config_of(kind: str, stride: int, **fields: Any) -> ModelConfig:
    stem = {"kind": kind, "stride": stride, "width": 10}
    stages = [{"token_mixer": "pool", "embed_dim": 12}]
    return validate(ModelConfig, {"img_size": (48, 96), "stem": stem, "stages": stages, **fields})


CASES = [
    ("patch", 1),
    ("patch", 3),
    ("patch", 16),
    ("conv", 1),
    ("conv", 2),
    ("conv", 8),
    ("metaformer", 2),
    ("metaformer", 3),
    ("metaformer", 4),
    ("deepvit", 2),
    ("deepvit", 16),
    ("bvit", 2),
    ("bvit", 16),
    ("shifted", 1),
    ("shifted", 4),
]


@pytest.mark.parametrize(("kind", "stride"), CASES)
def test_gives_one_token_per_stride(kind: str, stride: int) -> None:
    config = config_of(kind, stride, in_chans=2)
    tokens = Stem(config)(torch.randn(2, 2, 48, 96))
    assert config.grids[0] == (48 // stride, 96 // stride)
    assert tokens.shape == (2, 48 // stride * (96 // stride), 12)


def convolutions(kind: str, stride: int) -> list[tuple[Any, ...]]:
    layers = [m for m in Stem(config_of(kind, stride)).conv if isinstance(m, nn.Conv2d)]
    return [
        (
            m.in_channels,
            m.out_channels,
            m.kernel_size[0],
            m.stride[0],
            m.padding[0],
            bool(m.bias is not None),
        )
        for m in layers
    ]


@pytest.mark.parametrize(
    ("kind", "stride", "expected"),
    [
        ("patch", 16, [(3, 12, 16, 16, 0, True)]),
        ("conv", 8, [(3, 6, 3, 2, 1, True), (6, 12, 3, 2, 1, True), (12, 12, 3, 2, 1, True)]),
        ("conv", 2, [(3, 12, 3, 2, 1, True)]),
        ("conv", 1, [(3, 12, 3, 1, 1, True)]),
        ("metaformer", 4, [(3, 12, 7, 4, 2, True)]),
        (
            "deepvit",
            16,
            [(3, 10, 7, 2, 3, False), (10, 10, 3, 1, 1, False), (10, 12, 8, 8, 0, True)],
        ),
        ("bvit", 16, [(3, 3, 7, 2, 3, True), (3, 12, 8, 8, 0, True)]),
    ],
)
def test_layers_are_the_papers(kind: str, stride: int, expected: list[Any]) -> None:
    assert convolutions(kind, stride) == expected


def test_convolutions_after_the_last_factor_of_two_keep_the_grid() -> None:
    for stride, strides in ((1, [1, 1, 1]), (2, [2, 1, 1]), (4, [2, 2, 1])):
        stem = {"kind": "conv", "stride": stride, "convs": 3}
        config = config_of("conv", stride, stem=stem)
        layers = [m for m in Stem(config).conv if isinstance(m, nn.Conv2d)]
        assert [layer.stride[0] for layer in layers] == strides
        assert [layer.out_channels for layer in layers] == [6, 12, 12]
        tokens = Stem(config)(torch.randn(2, 3, 48, 96))
        assert tokens.shape == (2, 48 // stride * (96 // stride), 12)


def test_metaformer_batchnorm_stands_behind_the_convolution() -> None:
    stem = Stem(config_of("metaformer", 4, norm="batchnorm", norm_eps=1e-3))
    assert [type(layer) for layer in stem.conv] == [nn.Conv2d, nn.BatchNorm2d]
    assert stem.conv[1].eps == 1e-3
    assert isinstance(stem.norm, nn.Identity)


def test_metaformer_norm_follows_the_networks() -> None:
    for norm, names in (("layernorm", {"weight", "bias"}), ("layernorm_nobias", {"weight"})):
        stem = Stem(config_of("metaformer", 4, norm=norm))
        assert {name for name, _ in stem.norm.named_parameters()} == names


def test_shifted_patches_hold_the_image_and_four_copies_moved_by_a_pixel() -> None:
    """vit-pytorch's SPT with the same numbers, whose patch is (row, column, channel)."""
    config = config_of("shifted", 4, in_chans=2, norm_eps=1e-5)
    torch.manual_seed(0)
    stem, images = Stem(config), torch.randn(2, 2, 48, 96)
    moved = [torch.zeros_like(images) for _ in range(4)]
    moved[0][..., 1:] = images[..., :-1]
    moved[1][..., :-1] = images[..., 1:]
    moved[2][:, :, 1:] = images[:, :, :-1]
    moved[3][:, :, :-1] = images[:, :, 1:]
    five = torch.cat([images, *moved], dim=1).unfold(2, 4, 4).unfold(3, 4, 4)  # (B, 10, H, W, 4, 4)
    patches = five.permute(0, 2, 3, 1, 4, 5).reshape(2, 12 * 24, 160)
    torch.nn.init.normal_(stem.norm.weight)
    normed = torch.nn.functional.layer_norm(patches, (160,), stem.norm.weight, stem.norm.bias)
    torch.testing.assert_close(stem(images), stem.proj(normed))


@pytest.mark.parametrize(
    ("stride", "pools", "strides"), [(2, 1, [1]), (4, 1, [2, 1]), (4, 2, [1, 1])]
)
def test_the_last_halvings_may_be_max_pooling(stride: int, pools: int, strides: list[int]) -> None:
    """A pooled grid holds the maxima of the grid that the same convolutions leave without it."""
    torch.manual_seed(0)
    config = config_of("conv", stride, stem={"kind": "conv", "stride": stride, "pools": pools})
    stem, images = Stem(config), torch.randn(2, 3, 48, 96)
    assert [m.stride[0] for m in stem.conv if isinstance(m, nn.Conv2d)] == strides
    *layers, last = stem.conv
    assert isinstance(last, nn.MaxPool2d)
    before = nn.Sequential(*layers)(images)
    largest = before.unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2))
    torch.testing.assert_close(to_picture(stem(images), config.grids[0]), largest)


@pytest.mark.parametrize("filters", ["random", "dct"])
def test_crelu_has_half_of_the_filters_and_their_negatives(filters: str) -> None:
    stem = {"kind": "conv", "stride": 4, "act": "crelu", "filters": filters}
    torch.manual_seed(0)
    config = config_of("conv", 4, stem=stem)
    first, norm, act, last, *_ = Stem(config).conv
    dim = config.stages[0].embed_dim
    assert (first.out_channels, last.in_channels, last.out_channels) == (
        dim // 4,
        dim // 2,
        dim // 2,
    )
    found = act(norm(first(torch.randn(2, 3, 48, 96))))
    both = found[:, : dim // 4] * found[:, dim // 4 :]
    assert found.shape[1] == dim // 2
    assert not both.any()
    is_mean = torch.allclose(first.weight[0], torch.full((3, 3, 3), 27**-0.5))
    assert is_mean == (filters == "dct")


def test_no_more_poolings_than_halvings() -> None:
    stem = {"kind": "conv", "stride": 2, "pools": 2}
    with pytest.raises(ConfigError) as error:
        config_of("conv", 2, stem=stem)
    expected = "stem.pools = 2: a conv stem of stride 2 halves the grid once (nearest: 1)"
    assert expected in str(error.value)


def test_a_space_offers_no_more_poolings_than_halvings() -> None:
    stages = [{"token_mixer": "mbconv", "embed_dim": 8}]
    stem = {"kind": "conv", "stride": {"choice": [1, 2]}, "pools": {"choice": [0, 1]}}
    networks = space_of({"stem": stem, "stages": stages}).networks()
    found = {(network.stem.stride, network.stem.pools) for network in networks}
    assert found == {(1, 0), (2, 0), (2, 1)}
