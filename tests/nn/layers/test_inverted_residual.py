"""The layers of an inverted residual."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from tests.nn.networks import settled
from vitnas.nn.layers.inverted_residual import PointwiseConv, inverted_residual


def folded(layers: nn.Sequential) -> nn.Sequential:
    """Every BatchNorm as a part of the convolution before it."""
    kept: list[nn.Module] = []
    for layer in layers:
        if isinstance(layer, nn.BatchNorm2d):
            assert isinstance(kept[-1], nn.Conv2d)
            kept[-1] = fuse_conv_bn_eval(kept[-1], layer)
        else:
            kept.append(layer)
    return nn.Sequential(*kept)


@pytest.mark.parametrize(("hidden", "norms"), [(8, 2), (24, 3)])
@pytest.mark.parametrize("stride", [1, 2])
def test_every_norm_folds_into_the_convolution_before_it(
    hidden: int, norms: int, stride: int
) -> None:
    torch.manual_seed(0)
    layers = inverted_residual(8, hidden, 12, nn.Hardswish, stride=stride, squeezed=2)
    settled(layers)
    x = torch.randn(2, 8, 5, 6)
    assert len(folded(layers)) == len(layers) - norms
    torch.testing.assert_close(folded(layers)(x), layers(x), rtol=1e-4, atol=1e-4)


def test_the_depthwise_convolution_has_the_stride() -> None:
    """So the convolution before it works on the finer grid, and the one after it on the coarser."""
    layers = inverted_residual(8, 24, 12, nn.ReLU, kernel=5, stride=2)
    found = [layer for layer in layers if isinstance(layer, nn.Conv2d)]
    assert [(conv.kernel_size[0], conv.stride[0], conv.groups) for conv in found] == [
        (1, 1, 1),
        (5, 2, 24),
        (1, 1, 1),
    ]
    assert layers(torch.randn(1, 8, 5, 6)).shape == (1, 12, 3, 3)


@pytest.mark.parametrize("pictures", [2, 240])
def test_a_pointwise_convolution_is_the_same_as_a_product(pictures: int) -> None:
    """Of few pixels it is one in training; of 240 * 36 it is not."""
    torch.manual_seed(0)
    layer = PointwiseConv(5, 7)
    x = torch.randn(pictures, 5, 6, 6).to(memory_format=torch.channels_last).requires_grad_()
    wanted = torch.randn(pictures, 7, 6, 6)
    found, expected = (
        [out, *torch.autograd.grad((out * wanted).sum(), (x, layer.weight))]
        for out in (layer(x), layer.eval()(x))
    )
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert found[0].is_contiguous(memory_format=torch.channels_last)
