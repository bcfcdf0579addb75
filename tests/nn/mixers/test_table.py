"""The table of mixers is the configuration's list of mixers, and each keeps the contract."""

from __future__ import annotations

from importlib import import_module

from tests.contracts import MixerContract
from vitnas.config import rules
from vitnas.nn.mixers import MIXERS


def test_has_what_the_configuration_can_name() -> None:
    assert tuple(MIXERS) == rules.TOKEN_MIXERS


def test_every_mixer_is_held_to_the_contract() -> None:
    for name in MIXERS:
        contract = import_module(f"tests.nn.mixers.test_{name}").TestContract
        assert issubclass(contract, MixerContract)
        assert contract.token_mixer == name
