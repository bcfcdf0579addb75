"""Every mixer in the table has a mark of its own, and keeps the contract."""

from __future__ import annotations

from importlib import import_module

from tests.contracts import MixerContract
from vitnas.config.mixers import MIXERS


def test_every_mark_is_another_one() -> None:
    shapes = [mixer.mark[1:] for mixer in MIXERS.values()]
    assert len(set(shapes)) == len(shapes)


def test_every_mixer_is_held_to_the_contract() -> None:
    for name in MIXERS:
        contract = import_module(f"tests.nn.mixers.test_{name}").TestContract
        assert issubclass(contract, MixerContract)
        assert contract.mixer == name
