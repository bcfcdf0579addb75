"""Computing again instead of keeping."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from vitnas.nn.layers.checkpoint import checkpointed


class _Noisy(nn.Module):
    """Dropout, a batch norm, and taps that are read and written; counts its runs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.5)
        self.runs = 0

    def forward(self, x: Tensor, taps: list[Tensor] | None = None) -> Tensor:
        self.runs += 1
        hidden: Tensor = self.drop(self.norm(self.first(x)).relu())
        if taps is not None:
            hidden = hidden + taps[-1]
            taps.append(hidden.square())
        return hidden


def test_is_a_plain_call_that_runs_twice() -> None:
    torch.manual_seed(0)
    plain, x, given = _Noisy(), torch.randn(8, 6), torch.randn(8, 6)
    saving, results = copy.deepcopy(plain), []
    for module in (plain, saving):
        torch.manual_seed(1)
        taps = [given]
        out = module(x, taps) if module is plain else checkpointed(module, module, x, taps)
        assert len(taps) == 2
        (out + taps[1]).sum().backward()
        results.append((out, taps[1], *[p.grad for p in module.parameters()], *module.buffers()))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)
    assert (plain.runs, saving.runs) == (1, 2)
    assert saving.norm.momentum == plain.norm.momentum


def test_without_taps_and_without_gradients() -> None:
    module, x = _Noisy().eval(), torch.randn(8, 6)
    with torch.no_grad():
        assert torch.equal(checkpointed(module, module, x, None), module(x))
