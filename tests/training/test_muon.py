"""Muon: orthogonal steps for matrices, AdamW's for the rest; test_checkpoint.py resumes it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.training.images import Images
from vitnas.training.muon import MATRIX_RATE, Pack, orthogonal
from vitnas.training.optim import make_optimizer
from vitnas.training.proxy import ProxyTraining


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 8, 3, groups=8),
        nn.Flatten(),
        nn.Linear(128, 8),
        nn.Linear(8, 8),
    )


def _step(network: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
    optimizer.zero_grad()
    network(x).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 4, 32), (2, 32, 4), (1, 1, 7)])
def test_singular_values_become_about_one(shape: tuple[int, int, int]) -> None:
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 1e-3
    found = torch.linalg.svdvals(orthogonal(matrices))
    assert found.max() < 1.3
    assert found.median() > 0.65


def test_the_directions_stay() -> None:
    matrix = torch.randn(6, 10, generator=torch.Generator().manual_seed(1))
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    core = u.mT @ orthogonal(matrix[None])[0] @ v.mT
    assert torch.allclose(core, core.diag().diag(), atol=1e-4)


def test_a_gradient_of_zeros_is_no_step() -> None:
    assert torch.equal(orthogonal(torch.zeros(1, 3, 4)), torch.zeros(1, 3, 4))


@pytest.mark.parametrize("shape", [(16, 8), (8, 16)])
def test_a_matrix_steps_as_in_torchs_muon(shape: tuple[int, int]) -> None:
    """Torch's has bfloat16 inside, hence the tolerance."""
    ours, theirs = nn.Linear(*shape, bias=False), nn.Linear(*shape, bias=False)
    theirs.load_state_dict(ours.state_dict())
    rate = MATRIX_RATE * 0.01
    reference = torch.optim.Muon(
        theirs.parameters(), lr=rate, weight_decay=0.1, adjust_lr_fn="original"
    )
    optimizer = make_optimizer(ours, 0.01, 0.1, "muon")
    for seed in range(3):
        gradient = torch.randn(shape[::-1], generator=torch.Generator().manual_seed(seed))
        before = ours.weight.detach().clone()
        for linear, stepping in ((ours, optimizer), (theirs, reference)):
            linear.weight.grad = gradient.clone()
            stepping.step()
        assert (ours.weight - before).norm() > 0.05
        assert (ours.weight - theirs.weight).norm() < 0.1 * (ours.weight - before).norm()


def test_vectors_and_depthwise_kernels_step_as_in_adamw() -> None:
    ours, theirs = _network(), _network()
    _step(ours, make_optimizer(ours, 0.01, 0.05, "muon"), 0)
    _step(theirs, make_optimizer(theirs, 0.01, 0.05), 0)
    same = {name: torch.equal(p, dict(theirs.named_parameters())[name]) for name, p in named(ours)}
    assert [name for name, is_same in same.items() if not is_same] == [
        "0.weight",
        "4.weight",
        "5.weight",
    ]


def named(network: nn.Module) -> list[tuple[str, Tensor]]:
    return list(network.named_parameters())


@pytest.mark.slow
def test_a_proxy_may_ask_for_it(tiny_config: ModelConfig, digits: Images) -> None:
    proxy = ProxyConfig(epochs=2, optimizer="muon", lr=0.02)
    curves = [
        [(r.top1, r.loss, r.log_likelihood) for r in ProxyTraining(tiny_config, proxy, digits, 3)]
        for _ in range(2)
    ]
    assert curves[0] == curves[1]
    assert curves[0][-1][0] > 80


@pytest.mark.parametrize("skipped", [(), (1,)])
def test_matrices_of_many_shapes_share_stacks(skipped: tuple[int, ...]) -> None:
    """Zeros around a matrix, and lying on its side, do not change its step."""
    shapes = [(5, 3), (3, 5), (16, 4, 3, 3), (24, 24), (100, 20), (20, 100), (10, 24), (16, 16)]
    generator = torch.Generator().manual_seed(0)
    values = [torch.randn(shape, generator=generator) for shape in shapes]
    kept = [value for index, value in enumerate(values) if index not in skipped]
    pack = Pack(kept)
    for _ in range(2):  # the stacks are used again
        for value, update in zip(kept, pack.orthogonal(kept), strict=True):
            matrix = value.flatten(1)
            tall = max(1.0, matrix.shape[0] / matrix.shape[1]) ** 0.5
            expected = tall * orthogonal(matrix[None])[0]
            assert torch.allclose(update.flatten(1), expected, atol=1e-5)


def test_small_matrices_need_few_stacks() -> None:
    widths = (8, 12, 16, 24, 32, 48, 64)
    pack = Pack([torch.zeros(a, b) for a in widths for b in widths])
    assert len(pack._stacks) <= 6


@pytest.mark.parametrize(
    ("shapes", "stacks"),
    [
        ([(16, 32), (16, 16), (8, 64)], 1),
        ([(32, 96), (24, 32), (16, 16)], 1),
        ([(64, 64), (64, 128), (16, 16)], 3),
        ([(16, 16), (16, 1024)], 2),
    ],
)
def test_stacks_become_one_where_zeros_take_less_time_than_calls(
    shapes: list[tuple[int, int]], stacks: int
) -> None:
    pack = Pack([torch.zeros(shape) for shape in shapes])
    assert len(pack._stacks) == stacks


def test_a_matrix_without_a_gradient_stays() -> None:
    first, second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    optimizer = make_optimizer(nn.ModuleList([first, second]), 0.01, 0.1, "muon")
    for used, unused in ((first, second), (second, first)):
        before, still = used.weight.detach().clone(), unused.weight.detach().clone()
        used.weight.grad = torch.ones(4, 4)
        optimizer.step()
        assert not torch.equal(used.weight, before)
        assert torch.equal(unused.weight, still)
