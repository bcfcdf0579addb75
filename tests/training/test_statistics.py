"""BatchNorm's running statistics after few steps."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from tests.nn.networks import built, images_for, vit
from tests.training.conftest import Reads
from vitnas.training.statistics import SettledStatistics


def batches(number: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [5 + torch.randn(8, 1, 2, 2, generator=generator) for _ in range(number)]


def trained(norm: nn.BatchNorm2d, steps: list[Tensor]) -> nn.BatchNorm2d:
    settled = SettledStatistics(norm)
    for x in steps:
        with settled.step():
            norm(x)
    return norm


def mean_of(norm: nn.BatchNorm2d) -> float:
    return float(norm.get_buffer("running_mean"))


@pytest.mark.parametrize("steps", [1, 4, 10])
def test_the_first_ten_steps_make_a_plain_mean(steps: int) -> None:
    seen = batches(steps)
    norm = trained(nn.BatchNorm2d(1), seen)
    assert mean_of(norm) == pytest.approx(float(torch.cat(seen).mean()), abs=1e-5)
    variance = sum(float(x.var()) for x in seen) / steps
    assert float(norm.get_buffer("running_var")) == pytest.approx(variance, abs=1e-5)


def test_after_ten_steps_it_is_the_layer_s_own_rule() -> None:
    norm = trained(nn.BatchNorm2d(1, momentum=0.1), batches(10))
    plain = nn.BatchNorm2d(1, momentum=0.1)
    plain.load_state_dict(norm.state_dict())
    for x in batches(5, seed=1):
        plain(x)
    assert mean_of(trained(norm, batches(5, seed=1))) == mean_of(plain)


def test_the_layer_keeps_its_momentum_also_when_a_step_fails() -> None:
    norm = nn.BatchNorm2d(1, momentum=0.2)
    with pytest.raises(ValueError, match="more than 1 value"):
        trained(norm, [torch.zeros(1, 1, 1, 1)])
    assert norm.momentum == 0.2


def test_trained_statistics_are_not_forgotten() -> None:
    """A training that starts from weights goes on from the counter that they have."""
    norm, plain = nn.BatchNorm2d(1), nn.BatchNorm2d(1)
    for x in batches(12):
        norm(x)
        plain(x)
    trained(norm, batches(1, seed=2))
    plain(*batches(1, seed=2))
    assert mean_of(norm) == mean_of(plain)


def test_a_pass_that_is_computed_again_is_not_counted_twice() -> None:
    """Gradient checkpointing runs a block a second time in the backward pass."""
    plain = built(vit(norm="batchnorm", class_token=False))
    saving = copy.deepcopy(plain)
    saving.set_grad_checkpointing()
    for model in (plain, saving):
        settled = SettledStatistics(model.train())
        for seed in range(2):
            with settled.step():
                loss = model(images_for(plain, 4, seed)).square().sum()
            loss.backward()
    for (name, one), two in zip(plain.named_buffers(), saving.buffers(), strict=True):
        assert torch.equal(one, two), name


def test_a_step_reads_no_counter() -> None:
    norm = nn.BatchNorm2d(1)
    settled = SettledStatistics(norm)
    with Reads() as reads:
        for x in batches(12):
            with settled.step():
                norm(x)
    assert reads.number == 0
    plain = trained(nn.BatchNorm2d(1), batches(12))
    assert torch.equal(norm.get_buffer("running_var"), plain.get_buffer("running_var"))


@pytest.mark.parametrize("fields", [{"momentum": None}, {"track_running_stats": False}])
def test_layers_without_a_moving_mean_are_left_alone(fields: dict[str, None]) -> None:
    norm = nn.BatchNorm2d(1, **fields)  # type: ignore[arg-type]
    with SettledStatistics(norm).step():
        assert norm.momentum == nn.BatchNorm2d(1, **fields).momentum  # type: ignore[arg-type]
