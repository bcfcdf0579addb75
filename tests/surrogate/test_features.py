"""What the sampler sees of a network."""

from __future__ import annotations

import numpy as np

from vitnas.config.space import load_space
from vitnas.cost.closed_form import closed_form
from vitnas.engine.samplers.pool import SpacePool
from vitnas.surrogate.features import Encoder, facts_of


def test_constant_columns_are_left_out_and_unknown_facts_are_zero() -> None:
    encoder = Encoder([{"a": 1.0, "b": 5.0}, {"a": 3.0, "b": 5.0}, {"c": 1.0, "b": 5.0}])
    assert encoder.names == ("a", "c")
    rows = encoder.encode([{"a": 1.0}, {"a": 3.0}, {"c": 1.0, "zzz": 7.0}])
    assert np.allclose(rows.mean(axis=0), 0)
    assert np.allclose(rows.std(axis=0), 1)


def test_facts_tell_networks_apart_and_spellings_not() -> None:
    space = load_space("digits")
    first, *others = SpacePool(space, 0, first=30).sample()
    assert all(first.facts != other.facts for other in others)
    config = space.suggest(_Same(first.params))
    renamed = config.model_copy(update={"name": "other"})
    assert facts_of(renamed, closed_form(renamed)) == first.facts


class _Same:
    """Answers as a draw did."""

    def __init__(self, params: object) -> None:
        self._params = params

    def suggest_categorical(self, name: str, choices: object) -> object:
        return self._params[name]  # type: ignore[index]

    suggest_int = suggest_float = lambda self, name, low, high, **more: self._params[name]
