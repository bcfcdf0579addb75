"""Positions from a convolution."""

from __future__ import annotations

import torch

from vitnas.nn.layers.position import ConditionalPosition


def test_the_middle_of_an_even_picture_differs_from_its_border() -> None:
    torch.manual_seed(0)
    out = ConditionalPosition(4)(torch.ones(1, 30, 4), (5, 6)).reshape(5, 6, 4)
    torch.testing.assert_close(out[1:4, 1:5], out[1, 1].expand(3, 4, 4))
    for border in (out[0, 0], out[0, 2], out[2, 0], out[4, 5]):
        assert not torch.allclose(border, out[1, 1])


def test_it_starts_from_the_tokens_themselves() -> None:
    layer, x = ConditionalPosition(4), torch.randn(2, 12, 4)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    assert torch.equal(layer(x, (3, 4)), x)


def test_a_class_token_passes_unchanged() -> None:
    torch.manual_seed(0)
    layer, x = ConditionalPosition(4, prefix=1), torch.randn(2, 13, 4)
    out = layer(x, (3, 4))
    assert torch.equal(out[:, :1], x[:, :1])
    layer.prefix = 0
    assert torch.equal(out[:, 1:], layer(x[:, 1:], (3, 4)))
