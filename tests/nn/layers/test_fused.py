"""Which form of attention a mixer takes, and that all give the same numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.fx import symbolic_trace
from torch.overrides import TorchFunctionMode

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.nn import build_model
from vitnas.nn.layers.fused import fused_attention
from vitnas.nn.mixers import Place, build_mixer


class Widths(TorchFunctionMode):
    """The channels of a head in each call of PyTorch's fused attention."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            self.seen.append(args[0].shape[-1])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("token_mixer", ["mhsa", "ska"])
@pytest.mark.parametrize(
    ("side", "channels", "training", "seen"),
    [
        (8, 8, True, [16]),  # zeros up to 16 channels
        (8, 4, True, [16]),
        (8, 16, True, [16]),
        (8, 8, False, [8]),  # what is exported and counted
        (7, 8, True, []),  # the map is written out
        (4, 24, True, []),
        (4, 24, False, [24]),
        (4, 32, True, [32]),
        (3, 8, True, [8]),
    ],
)
def test_each_form_gives_the_same_numbers(
    token_mixer: str, side: int, channels: int, training: bool, seen: list[int]
) -> None:
    stage = {"token_mixer": token_mixer, "embed_dim": 2 * channels, "num_heads": 2}
    tree = {"img_size": side, "stem": {"stride": 1}, "stages": [stage]}
    place = Place(validate(ModelConfig, tree), 0)
    torch.manual_seed(0)
    mixer = build_mixer(place).train(training)
    x, ahead = torch.randn(2, 2, side**2, 2 * channels)
    found = []
    for mixer.fused_attn in (True, False):
        x.grad = None
        mixer.zero_grad()
        with Widths() as widths:
            out = mixer(x.requires_grad_(), place.grid)
        out.backward(ahead)
        found.append([out, x.grad, *(weight.grad for weight in mixer.parameters())])
        assert widths.seen == seen * mixer.fused_attn
    torch.testing.assert_close(*found)


def test_values_keep_their_own_channels() -> None:
    """Values may be wider than keys; the zeros are cut off."""
    query, key = torch.randn(2, 1, 3, 64, 8)
    value = torch.randn(1, 3, 64, 12)
    plain, padded = (fused_attention(query, key, value, scale=0.3, pad=pad) for pad in (0, 1))
    assert padded.shape == (1, 3, 64, 12)
    torch.testing.assert_close(padded, plain)


@pytest.mark.parametrize("side", [4, 8])
def test_torch_fx_traces_a_network_in_training(side: int) -> None:
    """As timm's `FeatureGraphNet` does: sizes are not known then."""
    stage = {"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 2}
    tree = {"img_size": side, "stem": {"stride": 1}, "stages": [stage]}
    model = build_model(validate(ModelConfig, tree)).train()
    images = torch.randn(2, 3, side, side)
    torch.testing.assert_close(symbolic_trace(model)(images), model(images))
