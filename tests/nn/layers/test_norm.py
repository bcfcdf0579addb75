"""Norms of tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vitnas.nn.layers.norm import NarrowBatchNorm, build_norm, picture_norm
from vitnas.nn.layers.tokens import to_picture, to_tokens


def test_bias_is_a_choice() -> None:
    assert [name for name, _ in build_norm(8).named_parameters()] == ["weight", "bias"]
    names = [name for name, _ in build_norm(8, "layernorm_nobias").named_parameters()]
    assert names == ["weight"]


def test_epsilon_is_1e_6() -> None:
    """Seen in what it does to a nearly constant vector: (x - mean) / sqrt(var + eps)."""
    x = torch.tensor([[-1e-3, 1e-3]], dtype=torch.float64)
    out = build_norm(2).double()(x)
    torch.testing.assert_close(out, x / (1e-6 + 1e-6) ** 0.5)
    wider = build_norm(2, eps=3e-6).double()(x)
    torch.testing.assert_close(wider, x / (1e-6 + 3e-6) ** 0.5)


def test_batchnorm_of_tokens_is_batchnorm_of_the_picture() -> None:
    torch.manual_seed(0)
    norm, theirs = build_norm(8, "batchnorm", eps=1e-3), nn.BatchNorm2d(8, eps=1e-3)
    x = torch.randn(3, 24, 8) * 2 + 1
    for _ in range(2):
        out = norm(x)
        torch.testing.assert_close(out, to_tokens(theirs(to_picture(x, (4, 6)))))
    torch.testing.assert_close(norm.norm.running_var, theirs.running_var)
    assert not torch.allclose(norm.eval()(x), out)
    torch.testing.assert_close(norm(x), to_tokens(theirs.eval()(to_picture(x, (4, 6)))))


def test_the_norm_of_few_channels_takes_bfloat16() -> None:
    """As it comes from a convolution in autocast; here of many pixels."""
    torch.manual_seed(0)
    ours, theirs = picture_norm(4), nn.BatchNorm2d(4)
    picture = torch.randn(5, 4, 41, 40).to(torch.bfloat16, memory_format=torch.channels_last)
    assert torch.equal(ours(picture), theirs(picture))
    torch.testing.assert_close(ours.running_var, theirs.running_var)


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("hw", [(6, 5), (41, 40), (41, 41)])  # few pixels, many, an odd number
@pytest.mark.parametrize("memory_format", [torch.channels_last, torch.contiguous_format])
def test_the_norm_of_few_channels_is_pytorchs(
    channels: int, memory_format: torch.memory_format, hw: tuple[int, int], momentum: float | None
) -> None:
    torch.manual_seed(0)
    ours, theirs = picture_norm(channels), nn.BatchNorm2d(channels)
    assert isinstance(ours, NarrowBatchNorm)
    wide = torch.randn(5, channels, *hw).to(memory_format=memory_format) * 3 + 2
    wanted = torch.randn(5, channels, *hw)

    def gradients(norm: nn.BatchNorm2d) -> list[Tensor]:
        norm.momentum = momentum
        nn.init.constant_(norm.weight, 0.7)
        x = wide.clone().requires_grad_()
        for _ in range(2):
            out = norm(x)
        return [out, *torch.autograd.grad((out * wanted).sum(), (x, norm.weight, norm.bias))]

    for found, expected in zip(gradients(ours), gradients(theirs), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for name, state in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], state)
    torch.testing.assert_close(ours.eval()(wide), theirs.eval()(wide))
