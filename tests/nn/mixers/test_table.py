"""Every mixer in the table has a class, a formula and a mark, and keeps the contract."""

from __future__ import annotations

from importlib import import_module

from tests.contracts import MixerContract
from vitnas.config.mixers import MIXERS
from vitnas.cost.mixers import FORMULAS
from vitnas.nn.mixers import TokenMixer, mixer_class


def test_every_mixer_has_a_class_and_a_formula() -> None:
    assert set(FORMULAS) == set(MIXERS)
    for name, mixer in MIXERS.items():
        kind = mixer_class(name)
        assert issubclass(kind, TokenMixer)
        assert mixer.path == f"{kind.__module__}:{kind.__qualname__}"


def test_every_mark_is_another_one() -> None:
    shapes = [mixer.mark[1:] for mixer in MIXERS.values()]
    assert len(set(shapes)) == len(shapes)


def test_every_mixer_is_held_to_the_contract() -> None:
    for name in MIXERS:
        contract = import_module(f"tests.nn.mixers.test_{name}").TestContract
        assert issubclass(contract, MixerContract)
        assert contract.mixer == name
