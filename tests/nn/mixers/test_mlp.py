"""MLP-Mixer's token mixing."""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F

from tests.contracts import MixerContract, place_of, tokens_for
from vitnas.nn.mixers import build_mixer


class TestContract(MixerContract):
    mixer = "mlp"
    variants: ClassVar = {
        "default": {},
        "class token": {"class_token": True},
        "hidden": {"tokens_dim": 5},
    }


def test_mixes_tokens_alike_in_every_channel() -> None:
    """MLP-Mixer, Eq. 1, channel by channel."""
    torch.manual_seed(0)
    place = place_of("mlp")
    mixer = build_mixer(place)
    x = tokens_for(place)
    out = mixer(x, place.grid)
    for channel in range(16):
        hidden = F.gelu(x[:, :, channel] @ mixer.fc1.weight.T + mixer.fc1.bias)
        torch.testing.assert_close(out[:, :, channel], hidden @ mixer.fc2.weight.T + mixer.fc2.bias)
