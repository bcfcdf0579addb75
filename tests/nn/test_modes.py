"""A network's mode comes back, module by module."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from vitnas.nn.modes import evaluating


def test_every_module_gets_its_own_mode_back_also_after_an_error() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.Dropout(), nn.Sequential(nn.BatchNorm1d(2)))
    network.train()
    network[1].eval()
    before = [module.training for module in network.modules()]
    with evaluating(network):
        assert not any(module.training for module in network.modules())
        assert not torch.is_grad_enabled()
    assert [module.training for module in network.modules()] == before
    with pytest.raises(RuntimeError), evaluating(network):
        network(torch.zeros(2, 3))  # of another width
    assert [module.training for module in network.modules()] == before
    assert torch.is_grad_enabled()
