"""Latency and memory on a device, against cases that can be worked out by hand."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from vitnas.config.costs import COSTS, MEASURED
from vitnas.config.model import ModelConfig
from vitnas.cost.device import measure
from vitnas.nn import build_model


class Sleeper(nn.Module):
    """Takes so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def forward(self, x: Tensor) -> Tensor:
        time.sleep(self.seconds)
        return x


def chain() -> nn.Module:
    """1000 -> 2000 -> 500 -> 1000 numbers; at the height two neighbours are held."""
    widths = (1000, 2000, 500, 1000)
    layers = [nn.Linear(a, b, bias=False) for a, b in pairwise(widths)]
    return nn.Sequential(nn.Flatten(), *layers)


def chain_bytes(batch: int) -> int:
    weights = 1000 * 2000 + 2000 * 500 + 500 * 1000
    return 4 * (weights + batch * (1000 + 2000 + 500))


KINDS = [COSTS[name] for name in MEASURED]


def memory(model: nn.Module, device: str, batch: int) -> float:
    kind = replace(COSTS["peak_memory_mb"], batch=batch)
    return measure(model, (10, 10, 10), device, [kind])[kind.name]


@pytest.mark.parametrize("batch", [1, 3])
def test_memory_is_parameters_images_and_the_height_of_the_pass(batch: int) -> None:
    assert memory(chain(), "cpu", batch) == pytest.approx(chain_bytes(batch) / 1e6, abs=2e-6)


def test_what_else_is_allocated_does_not_count_and_neither_do_gradients() -> None:
    model = chain()
    model(torch.zeros(1, 1000)).sum().backward()
    beside = torch.zeros(1_000_000)
    assert memory(model, "cpu", 1) == pytest.approx(chain_bytes(1) / 1e6, abs=2e-6)
    assert len(beside)


def test_a_pass_that_takes_ten_milliseconds() -> None:
    found = measure(Sleeper(0.01), (1, 2, 2), "cpu", [COSTS["latency_ms"]])
    assert 10 <= found["latency_ms"] < 40


def test_throughput_is_of_batches() -> None:
    found = measure(Sleeper(0.01), (1, 2, 2), "cpu", [COSTS["throughput"]])
    assert 1600 < found["throughput"] <= 6400


@pytest.mark.slow
def test_the_network_is_left_as_it_was() -> None:
    stages = [{"token_mixer": "mhsa", "embed_dim": 32}, {"token_mixer": "dwconv", "embed_dim": 32}]
    config = {"img_size": 8, "num_classes": 10, "stem": {"kind": "conv", "stride": 2}}
    model = build_model(ModelConfig.model_validate({**config, "stages": stages}))
    model.train()
    model.stages[0].eval()
    modes = [module.training for module in model.modules()]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.random.get_rng_state()
    found = measure(model, (3, 8, 8), "cpu", KINDS)
    assert min(found.values()) > 0
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.slow
def test_nothing_is_written_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    measure(chain(), (10, 10, 10), "cpu", KINDS)
    assert capfd.readouterr() == ("", "")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_memory_on_a_card_is_the_pass_in_blocks_of_512_bytes() -> None:
    beside = torch.zeros(1_000_000, device="cuda")
    found = memory(chain().cuda(), "cuda", 64)
    assert found == pytest.approx(chain_bytes(64) / 1e6, abs=0.01)
    assert len(beside)
