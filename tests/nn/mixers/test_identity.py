"""The control."""

from __future__ import annotations

from typing import ClassVar

import torch

from tests.contracts import MixerContract, place_of, tokens_for
from vitnas.nn.mixers import build_mixer


class TestContract(MixerContract):
    mixer = "identity"
    variants: ClassVar = {"default": {}, "class token": {"class_token": True}}


def test_gives_its_input() -> None:
    place = place_of("identity")
    x = tokens_for(place)
    mixer = build_mixer(place)
    assert torch.equal(mixer(x, place.grid), x)
    assert not list(mixer.parameters())
