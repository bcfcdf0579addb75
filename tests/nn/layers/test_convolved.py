"""Convolutions before projections."""

from __future__ import annotations

import torch

from vitnas.nn.layers.convolved import Convolutions, ConvolvedTokens
from vitnas.nn.layers.resizing import TokenLayout
from vitnas.nn.layers.tokens import to_picture, to_tokens


def test_a_stride_rounds_up() -> None:
    keys = Convolutions(3, 2, prefix=1).keys(TokenLayout((5, 8), 1))
    assert keys == TokenLayout((3, 4), 1)
    layer = ConvolvedTokens(4, Convolutions(3, 2, prefix=1), 2)
    assert layer(torch.randn(2, 41, 4), (5, 8)).shape == (2, keys.tokens, 4)


def test_tokens_before_the_grid_are_passed_on() -> None:
    layer, x = ConvolvedTokens(4, Convolutions(3, prefix=2)), torch.randn(2, 14, 4)
    assert torch.equal(layer.eval()(x, (3, 4))[:, :2], x[:, :2])


def test_each_channel_is_convolved_and_normed() -> None:
    layer, x = ConvolvedTokens(4, Convolutions(3, 2), 2).eval(), torch.randn(2, 12, 4)
    layer.norm.norm.running_mean.fill_(0.5)
    picture = torch.nn.functional.conv2d(
        to_picture(x, (3, 4)), layer.conv.weight, stride=2, padding=1, groups=4
    )
    expected = (to_tokens(picture) - 0.5) / (1 + 1e-5) ** 0.5
    torch.testing.assert_close(layer(x, (3, 4)), expected)
