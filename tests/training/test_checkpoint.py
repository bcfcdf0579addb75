"""A checkpoint gives back what it took, tied weights and step counts included."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from vitnas.errors import RunError
from vitnas.training import checkpoint
from vitnas.training.optim import make_optimizer


def trained(kind: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A network with tied layers and a batch norm, three steps on."""
    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, nn.BatchNorm1d(4), layer)
    optimizer = make_optimizer(model, 0.1, 0.05, kind)
    for step in range(3):
        step_on(model, optimizer, step)
    return model, optimizer


def step_on(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(seed))
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


@pytest.mark.parametrize("kind", ["adamw", "lamb", "sgd"])
def test_what_goes_on_is_what_would_have(kind: str, tmp_path: Path) -> None:
    model, optimizer = trained(kind)
    log = [{"epoch": 1, "loss": 0.1 + 0.2}]
    checkpoint.take({"seed": 1}, log, {"model": model}, optimizer).save(tmp_path)
    saved = checkpoint.read(tmp_path)
    assert saved is not None
    assert (saved.identity, saved.log) == ({"seed": 1}, log)
    assert not [name for name in saved.tensors if name.startswith("model/2")]  # tied to the first
    layer = nn.Linear(4, 4)
    other = nn.Sequential(layer, nn.BatchNorm1d(4), layer)
    optimizer2 = make_optimizer(other, 0.1, 0.05, kind)
    saved.restore("model", other)
    saved.restore_optimizer(optimizer2)
    for network, steps in ((model, optimizer), (other, optimizer2)):
        step_on(network, steps, 9)
    assert other[0].weight is other[2].weight
    for one, two in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        assert torch.equal(one, two)


def test_no_checkpoint_is_none(tmp_path: Path) -> None:
    assert checkpoint.read(tmp_path) is None
    assert checkpoint.read(tmp_path / "gone") is None


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    one = {"network": "a", "recipe": {"lr": 0.1, "distill": {"teacher": None}}}
    checkpoint.check_same(one, {**one}, tmp_path)
    for other, message in (
        ({**one, "network": "b"}, "network was 'a' and is 'b'"),
        ({**one, "recipe": {"lr": 0.2, "distill": {"teacher": None}}}, "recipe.lr was 0.1 and is"),
        (
            {**one, "recipe": {"lr": 0.1, "distill": {"teacher": "t"}}},
            "teacher was null and is 't'",
        ),
        ({**one, "seed": 1}, "seed was null and is 1"),
    ):
        with pytest.raises(RunError, match=message):
            checkpoint.check_same(one, other, tmp_path)
