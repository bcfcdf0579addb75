"""Between stages."""

from __future__ import annotations

from typing import get_args

import pytest
import torch
from timm.models._efficientnet_blocks import DepthwiseSeparableConv
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from tests.nn.networks import copy_in_order, timms_inverted_residual
from vitnas.config.parts import POOLED, Downsampling
from vitnas.nn.layers.downsample import Downsample
from vitnas.nn.layers.pooling import MaxBlurPool
from vitnas.nn.layers.tokens import to_picture, to_tokens

KINDS = list(get_args(Downsampling))


@pytest.mark.parametrize("kind", KINDS)
def test_halves_the_grid(kind: str) -> None:
    layer = Downsample(8, 12, kind, hidden=20, squeezed=2)
    assert layer(torch.randn(2, 24, 8), (4, 6)).shape == (2, 6, 12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_token_has_a_linear_layer_of_its_own(kind: str) -> None:
    torch.manual_seed(0)
    layer, x = Downsample(8, 12, kind, hidden=20, prefix=1).eval(), torch.randn(2, 25, 8)
    out = layer(x, (4, 6))
    assert out.shape == (2, 7, 12)
    torch.testing.assert_close(out[:, 0], layer.token(x[:, 0]))
    layer.prefix = 0
    torch.testing.assert_close(out[:, 1:], layer(x[:, 1:], (4, 6)))


@pytest.mark.parametrize(("before", "after", "groups"), [(64, 128, 64), (64, 160, 32), (8, 9, 1)])
def test_sret_groups_where_they_fit(before: int, after: int, groups: int) -> None:
    assert Downsample(before, after, "conv").conv.groups == groups


def test_keeps_places() -> None:
    """What is new in a corner of the grid is new in that corner alone."""
    torch.manual_seed(0)
    for kind in KINDS:
        layer, x = Downsample(4, 4, kind, hidden=8).eval(), torch.randn(1, 48, 4)
        moved = x.clone()
        moved[:, 47, :2] += 3.0  # last row, last column of 6 x 8
        changed = (layer(moved, (6, 8)) - layer(x, (6, 8))).abs().sum((0, 2)) > 1e-6
        assert changed.nonzero().flatten().tolist() == [11]


def test_separable_is_timms_and_folds() -> None:
    """Every BatchNorm stands right behind a convolution, in eval one layer with it."""
    torch.manual_seed(0)
    ours = Downsample(8, 12, "separable")
    theirs = DepthwiseSeparableConv(8, 12, stride=2)
    values = dict(zip(theirs.state_dict(), ours.conv.state_dict().values(), strict=True))
    theirs.load_state_dict(values)
    x = torch.randn(4, 24, 8)
    for mode in (True, False):
        expected = theirs.train(mode)(to_picture(x, (4, 6)))
        torch.testing.assert_close(ours.train(mode)(x, (4, 6)), to_tokens(expected))
    first, norm, act, last, last_norm = ours.conv.children()
    assert isinstance(first, nn.Conv2d)
    assert isinstance(last, nn.Conv2d)
    folded = nn.Sequential(fuse_conv_bn_eval(first, norm), act, fuse_conv_bn_eval(last, last_norm))
    torch.testing.assert_close(to_tokens(folded(to_picture(x, (4, 6)))), ours(x, (4, 6)))


@pytest.mark.parametrize(("ratio", "squeezed"), [(1.0, 0), (3.0, 0), (4.0, 2)])
def test_mbconv_is_timms_inverted_residual_of_stride_two(ratio: float, squeezed: int) -> None:
    torch.manual_seed(0)
    ours = Downsample(8, 12, "mbconv", hidden=int(8 * ratio), squeezed=squeezed)
    theirs = timms_inverted_residual(8, 12, nn.Hardswish, ratio, stride=2, squeezed=squeezed)
    copy_in_order(ours.conv, theirs)
    x = torch.randn(4, 24, 8)
    for mode in (True, False):
        expected = theirs.train(mode)(to_picture(x, (4, 6)))
        torch.testing.assert_close(ours.train(mode)(x, (4, 6)), to_tokens(expected))


def test_separable_is_mbconv_without_expansion_but_for_the_activation() -> None:
    separable = Downsample(8, 12, "separable").conv.state_dict()
    mbconv = Downsample(8, 12, "mbconv", hidden=8).conv.state_dict()
    shapes = [{name: value.shape for name, value in found.items()} for found in (separable, mbconv)]
    assert shapes[0] == shapes[1]


def test_norm_is_metaformers_alone() -> None:
    names = {name for name, _ in Downsample(8, 8, "metaformer").named_parameters()}
    assert "norm.weight" in names
    for kind in ("conv", "patch", "mbconv"):
        layer = Downsample(8, 8, kind, hidden=16)
        assert not any("norm" in name for name, _ in layer.named_parameters())


def test_cvts_norm_stands_behind_its_convolution() -> None:
    layer, x = Downsample(8, 12, "cvt"), torch.randn(2, 24, 8)
    out = layer(x, (4, 6))
    torch.testing.assert_close(out.mean(-1), torch.zeros(2, 6), atol=1e-5, rtol=0)
    layer.norm_after = torch.nn.Identity()
    plain = layer(x, (4, 6))
    torch.testing.assert_close(out, torch.nn.functional.layer_norm(plain, (12,), eps=1e-6))


def test_vgg_takes_the_largest_of_four_places_behind_its_convolution() -> None:
    torch.manual_seed(0)
    layer, x = Downsample(8, 12, "vgg").eval(), torch.randn(2, 24, 8)
    conv, norm, _, _ = layer.conv.children()
    found = norm(conv(to_picture(x, (4, 6)))).relu()
    largest = found.unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2))
    torch.testing.assert_close(layer(x, (4, 6)), to_tokens(largest))


def test_crelu_is_vgg_with_the_negatives_of_half_of_the_filters() -> None:
    torch.manual_seed(0)
    layer, vgg, x = (
        Downsample(8, 12, "crelu").eval(),
        Downsample(8, 12, "vgg"),
        torch.randn(2, 24, 8),
    )
    weight = layer.conv[0].weight.data
    assert weight.shape == (6, 8, 3, 3)
    vgg.conv[0].weight.data = torch.cat([weight, -weight])
    torch.testing.assert_close(layer(x, (4, 6)), vgg.eval()(x, (4, 6)))


@pytest.mark.parametrize("kind", POOLED)
def test_the_layers_that_pool_may_blur(kind: Downsampling) -> None:
    torch.manual_seed(0)
    layer = Downsample(8, 12, kind, pooling="max_blur")
    assert layer(torch.randn(2, 24, 8), (4, 6)).shape == (2, 6, 12)
    assert sum(isinstance(module, MaxBlurPool) for module in layer.modules()) == 1
    assert not any(isinstance(module, nn.MaxPool2d) for module in layer.modules())
    assert list(layer.state_dict()) == list(Downsample(8, 12, kind).state_dict())


def test_maxpool_passes_on_the_largest_of_four_places() -> None:
    torch.manual_seed(0)
    layer, x = Downsample(8, 12, "maxpool").eval(), torch.randn(2, 24, 8)
    largest = to_picture(x, (4, 6)).unfold(2, 2, 2).unfold(3, 2, 2).amax((-1, -2))
    _, conv, norm = layer.conv.children()
    torch.testing.assert_close(layer(x, (4, 6)), to_tokens(norm(conv(largest))))
    assert {name for name, _ in layer.named_parameters()} == {
        "conv.1.weight",
        "conv.2.weight",
        "conv.2.bias",
    }
