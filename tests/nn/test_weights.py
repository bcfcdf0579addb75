"""Weights on disk: each tensor once, what was shared stays shared, nothing but data is read."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save
from torch import nn

from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError, DataError, VitnasError
from vitnas.nn.model import build_model
from vitnas.nn.weights import load_weights, network_with, weights_bytes


class _Shared(nn.Module):
    """One layer under two names, and a batch norm with buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = self.first
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("scratch", torch.zeros(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.norm(self.again(self.first(x)))
        return result


def _used() -> _Shared:
    network = _Shared()
    network(torch.randn(16, 4))
    return network.eval()


def test_shared_layers_are_stored_once_with_the_buffers() -> None:
    stored = load(weights_bytes(_used()))
    assert "first.weight" in stored
    assert not [name for name in stored if name.startswith("again") or name == "scratch"]
    assert {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"} <= set(stored)


def test_loading_gives_the_same_outputs_and_unties_nothing(tmp_path: Path) -> None:
    one, other = _used(), _Shared().eval()
    path = tmp_path / "weights.safetensors"
    path.write_bytes(weights_bytes(one))
    load_weights(other, path)
    x = torch.randn(5, 4)
    assert torch.equal(one(x), other(x))
    assert other.again.weight is other.first.weight
    assert weights_bytes(one) == weights_bytes(other)


def test_a_recursive_hybrid_survives_the_way(tiny_config: ModelConfig) -> None:
    one, other = build_model(tiny_config).eval(), build_model(tiny_config).eval()
    load_weights(other, weights_bytes(one))
    x = torch.randn(3, 1, 8, 8)
    assert torch.equal(one(x), other(x))


def test_weights_of_another_network_are_refused_and_change_nothing() -> None:
    network = nn.Linear(4, 4)
    before = network.weight.clone()
    for other, problem in [
        (nn.Linear(4, 4, bias=False), "have no 'bias'"),
        (nn.Sequential(nn.Linear(4, 4)), "'0.bias'"),
        (nn.Linear(5, 4), r"'weight' is \[4, 5\] and should be \[4, 4\]"),
    ]:
        with pytest.raises(ConfigError, match=problem):
            load_weights(network, weights_bytes(other))
    assert torch.equal(network.weight, before)


@pytest.mark.parametrize("content", [b"", b"x", b"\x80\x04K\x01.", b"\xff" * 64])
def test_what_is_not_safetensors_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a safetensors file") as caught:
        load_weights(nn.Linear(1, 1), path)
    assert str(path) in str(caught.value)
    with pytest.raises(DataError, match="no such file"):
        load_weights(nn.Linear(1, 1), tmp_path / "gone")


def weights_of(network: nn.Module, **changed: torch.Tensor) -> bytes:
    return save({**network.state_dict(), **changed})


@pytest.mark.parametrize(
    ("bias", "problem"),
    [
        (torch.tensor([1.0, torch.nan]), "'bias' has numbers that are not finite"),
        (torch.tensor([1.0, -torch.inf]), "'bias' has numbers that are not finite"),
        (torch.tensor([1.0, 1e300], dtype=torch.float64), "numbers that are not finite"),
        (torch.tensor([1, 2]), "'bias' holds whole numbers and should hold floats"),
        (torch.tensor([True, False]), "'bias' holds truth values and should hold floats"),
        (torch.ones(2, dtype=torch.complex64), "'bias' holds complex numbers and should hold"),
    ],
)
def test_numbers_that_the_network_cannot_have_are_refused(
    bias: torch.Tensor, problem: str, tmp_path: Path
) -> None:
    network = nn.Linear(3, 2)
    before = network.bias.clone()
    path = tmp_path / "model.safetensors"
    path.write_bytes(weights_of(network, bias=bias))
    with pytest.raises(VitnasError, match=problem) as caught:
        load_weights(network, path)
    assert str(caught.value).startswith(f"{path}: ")
    assert torch.equal(network.bias, before)


def test_a_file_without_weights_says_so(tiny_config: ModelConfig) -> None:
    with pytest.raises(ConfigError, match="another network: they have no numbers for "):
        network_with(tiny_config, save({}))


def test_floats_come_in_any_precision() -> None:
    network = nn.Linear(3, 2)
    load_weights(network, weights_of(network, bias=torch.tensor([0.5, 2.0], dtype=torch.bfloat16)))
    assert network.bias.tolist() == [0.5, 2.0]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: is not a regular file"):
        load_weights(nn.Linear(3, 2), tmp_path / "pipe")


def test_what_memory_cannot_hold_is_refused(tmp_path: Path) -> None:
    file, pages = (
        tmp_path / "model.safetensors",
        int(Path("/proc/self/statm").read_text().split()[0]),
    )
    file.write_bytes(weights_bytes(nn.Linear(1, 1)))
    os.truncate(file, 64 << 30)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), limits[1]))
    try:
        with pytest.raises(DataError, match=r"model\.safetensors: does not fit into memory"):
            load_weights(nn.Linear(1, 1), file)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_too_few_numbers_are_refused_before_a_huge_network_is_built(
    tiny_config: ModelConfig,
) -> None:
    stages = [stage.model_dump() for stage in tiny_config.stages]
    stages[1] |= {"depth": 1_000_000, "embed_dim": 1_000_000, "groups": (1,)}
    huge = ModelConfig.model_validate({**tiny_config.model_dump(), "stages": stages})
    with pytest.raises(ConfigError, match="another network: they have 8 numbers for 8,000,"):
        network_with(huge, weights_of(nn.Linear(3, 2)))
