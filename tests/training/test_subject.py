"""One training for whatever has a key."""

from __future__ import annotations

import pytest

from tests.config.test_baseline import DIGITS
from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.cost.closed_form import closed_form
from vitnas.exported.design import size_of_design
from vitnas.training.data import load_data
from vitnas.training.proxy import ProxyTraining
from vitnas.training.subject import training_of

PROXY = ProxyConfig(epochs=2, batch_size=128)


def test_a_network_of_ours_trains_as_ever(tiny_config: ModelConfig) -> None:
    images = load_data(DataConfig(), 8)
    theirs = [epoch.top1 for epoch in ProxyTraining(tiny_config, PROXY, images, 3)]
    assert [epoch.top1 for epoch in training_of(tiny_config, PROXY, images, 3)] == theirs
    assert size_of_design(tiny_config).flops == closed_form(tiny_config).flops


@pytest.mark.slow
def test_a_reference_follows_from_its_seed() -> None:
    images = load_data(DataConfig(), 8)
    curves = [[e.loss for e in training_of(DIGITS, PROXY, images, s)] for s in (0, 0, 1)]
    assert curves[0] == curves[1] != curves[2]
    assert size_of_design(DIGITS).flops == 21152
