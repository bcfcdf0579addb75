"""What is decayed, and the rate of every step."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.nn.model import build_model
from vitnas.training.optim import clip_gradients, layer_scales, learning_rate, make_optimizer


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.again = self.first
        self.norm = nn.LayerNorm(4)
        self.position = nn.Parameter(self.first.weight.detach().clone())
        self.still = nn.Parameter(self.first.weight.detach().clone(), requires_grad=False)

    def no_weight_decay(self) -> set[str]:
        return {"position"}


def test_only_matrices_that_are_not_exempt_are_decayed() -> None:
    network = _Network()
    decayed, kept = make_optimizer(network, 0.1, 0.05).param_groups
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.05, 0.0)
    assert [id(p) for p in decayed["params"]] == [id(network.first.weight)]
    expected = [network.position, network.first.bias, network.norm.weight, network.norm.bias]
    assert {id(p) for p in kept["params"]} == {id(p) for p in expected}


def test_a_network_without_exemptions_or_vectors_is_fine() -> None:
    (group,) = make_optimizer(nn.Linear(2, 2, bias=False), 0.1, 0.05).param_groups
    assert group["weight_decay"] == 0.05


@given(st.integers(1, 20), st.integers(1, 30), st.floats(0, 40))
def test_the_rate_rises_to_its_peak_and_falls(epochs: int, steps: int, warmup: float) -> None:
    proxy = ProxyConfig(epochs=epochs, warmup_epochs=warmup, lr=0.5)
    rates = [learning_rate(proxy, step, steps) for step in range(epochs * steps)]
    top = rates.index(max(rates))
    assert all(0 < rate <= 0.5 for rate in rates)
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
    assert max(rates) == 0.5
    assert top <= max(0, len(rates) // 2)


def test_the_warm_up_is_as_long_as_it_says() -> None:
    proxy = ProxyConfig(epochs=10, warmup_epochs=2, lr=0.3)
    rates = [learning_rate(proxy, step, 10) for step in range(100)]
    assert rates.index(max(rates)) == 20
    assert rates[0] == pytest.approx(0.3 / 21)
    assert rates[-1] < 0.001


def test_the_cool_down_stays_at_the_least_rate() -> None:
    proxy = ProxyConfig(epochs=10, warmup_epochs=2, cooldown_epochs=3, lr=0.3, min_lr=0.01)
    rates = [learning_rate(proxy, step, 10) for step in range(100)]
    assert rates[70:] == [0.01] * 30
    assert min(rates[:70]) > 0.01
    short = proxy.model_copy(update={"cooldown_epochs": 50.0})
    assert [learning_rate(short, step, 10) for step in range(20, 100)] == [0.01] * 80


def test_the_rate_falls_from_the_head_to_the_stem(tiny_config: ModelConfig) -> None:
    model = build_model(tiny_config)
    scales = layer_scales(model, 0.5)
    by_name = {name: scales[parameter] for name, parameter in model.named_parameters()}
    assert {v for n, v in by_name.items() if n.startswith("head")} == {1.0}
    blocks = list(dict.fromkeys(n.split(".mlp")[0] for n in by_name if ".mlp." in n))
    stem = {v for n, v in by_name.items() if n.startswith("stem")}
    of_blocks = [by_name[next(n for n in by_name if n.startswith(block))] for block in blocks]
    assert [*stem, *of_blocks] == sorted([*stem, *of_blocks])
    assert len({*stem, *of_blocks}) > 2
    groups = make_optimizer(model, 0.1, 0.05, layer_decay=0.5).param_groups
    assert sum(len(group["params"]) for group in groups) == len(by_name)
    for group in groups:
        assert {scales[p] for p in group["params"]} == {group["lr_scale"]}
        assert all((p.ndim > 1) or group["weight_decay"] == 0 for p in group["params"])


def test_layers_of_other_models_are_their_modules() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    scales = layer_scales(model, 0.5)
    assert [scales[p] for p in model.parameters()] == [0.25, 0.25, 0.5, 0.5, 1.0, 1.0]


@pytest.mark.parametrize("most", [1e-3, 1e3])
def test_gradients_are_clipped_as_by_torch(most: float) -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(4, 4), nn.Linear(4, 4))
    unused = list(network[2].parameters())
    generator = torch.Generator().manual_seed(0)
    used = [parameter for parameter in network.parameters() if parameter not in set(unused)]
    drawn = [torch.randn(parameter.shape, generator=generator) for parameter in used]
    found = []
    for clip in (clip_gradients, nn.utils.clip_grad_norm_):
        for parameter, gradient in zip(used, drawn, strict=True):
            parameter.grad = gradient.clone()
        clip(list(network.parameters()), most)
        found.append([parameter.grad for parameter in used])
    assert all(map(torch.equal, *found))
    assert all(parameter.grad is None for parameter in unused)


def test_nothing_to_clip() -> None:
    clip_gradients(list(nn.Linear(2, 2).parameters()), 1.0)
