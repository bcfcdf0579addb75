"""A product with a matrix for each channel is the convolution."""

from __future__ import annotations

import pytest
import torch

from vitnas.nn.layers.depthwise import MultipliedConv


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize(("grid", "multiplier"), [((4, 4), 2), ((8, 8), 3), ((5, 3), 2)])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_a_small_picture_has_the_same_result_and_gradients(
    grid: tuple[int, int], multiplier: int, kernel: int, stride: int, layout: torch.memory_format
) -> None:
    torch.manual_seed(0)
    layer = MultipliedConv(6, 6 * multiplier, kernel, stride)
    x = torch.randn(7, 6, *grid).to(memory_format=layout).requires_grad_()
    wanted = layer.eval()(x)
    weights = torch.randn_like(wanted)
    found, expected = (
        [out, *torch.autograd.grad((out * weights).sum(), (x, layer.weight, layer.bias))]
        for out in (layer.train()(x), wanted)
    )
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("side", "dtype"), [(9, torch.float32), (4, torch.float64)])
def test_a_larger_picture_and_other_numbers_are_the_librarys(side: int, dtype: torch.dtype) -> None:
    layer = MultipliedConv(4, 8, stride=2).to(dtype)
    x = torch.randn(3, 4, side, side, dtype=dtype)
    assert torch.equal(layer.train()(x), layer.eval()(x))


def test_the_result_has_its_channels_side_by_side() -> None:
    """So tokens are a view of it."""
    x = torch.randn(3, 4, 8, 8).to(memory_format=torch.channels_last).requires_grad_()
    out = MultipliedConv(4, 8, stride=2)(x)
    assert out.is_contiguous(memory_format=torch.channels_last)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert gradient.is_contiguous(memory_format=torch.channels_last)


def test_half_precision_has_the_plain_convolution() -> None:
    """Under autocast a product would be of two kinds of numbers in the backward pass."""
    conv = MultipliedConv(4, 8)
    x = torch.randn(2, 4, 4, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = conv(x)
    out.float().sum().backward()
    assert x.grad is not None
