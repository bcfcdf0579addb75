"""Every image is shown once to every observer, in batches that fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.diagnose.networks import MHSA, hooks_of, network
from vitnas.diagnose.layers import Layer
from vitnas.diagnose.observer import Finding, Observer
from vitnas.diagnose.survey import Survey, survey
from vitnas.diagnose.sweep import sweep_features, sweep_maps
from vitnas.training.split import Split


class Notes(Observer):
    """Keeps the sizes of what it is shown."""

    def __init__(self) -> None:
        self.maps: list[tuple[int, int]] = []
        self.features: list[tuple[int, int]] = []
        self.types: set[torch.dtype] = set()
        self.batches = 0

    def see_map(self, layer: Layer, attention: Tensor) -> None:
        self.maps.append((layer.index, len(attention)))
        self.types.add(attention.dtype)

    def see_features(self, layer: Layer, tokens: Tensor) -> None:
        self.features.append((layer.index, len(tokens)))
        self.types.add(tokens.dtype)

    def end_batch(self) -> None:
        self.batches += 1

    def finding(self) -> Finding:
        return Finding("")


def images(number: int) -> Split:
    x = torch.arange(number * 64).remainder(256).to(torch.uint8).reshape(number, 1, 8, 8)
    moment = torch.full((1, 1, 1), 100.0)
    return Split(x, torch.zeros(number).long(), moment, moment)


@pytest.fixture
def found() -> Survey:
    return survey(network(MHSA | {"depth": 2}), torch.zeros(1, 1, 8, 8))


def test_every_observer_sees_the_maps_of_every_image(
    found: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = found.largest_comparison
    monkeypatch.setattr("vitnas.diagnose.survey.MOST_HELD", 4 * numbers)
    observers = Notes(), Notes()
    sweep_maps(found, images(10), observers)
    for notes in observers:
        assert notes.maps == [(0, 4), (1, 4), (0, 4), (1, 4), (0, 2), (1, 2)]
        assert (notes.batches, notes.features, notes.types) == (3, [], {torch.float32})
    assert not hooks_of(found.network)


def test_every_observer_sees_the_features_of_every_image(found: Survey) -> None:
    notes = Notes()
    sweep_features(found, images(40), [notes])
    assert notes.features == [(0, 32), (1, 32), (0, 8), (1, 8)]
    assert (notes.batches, notes.maps) == (2, [])


def test_without_an_observer_the_network_does_not_run(found: Survey) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError

    handle = found.network.register_forward_pre_hook(fail)
    sweep_maps(found, images(2), [])
    sweep_features(found, images(2), [])
    handle.remove()
