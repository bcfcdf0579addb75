"""PyTorch's optimizers, called without what wraps their methods."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from vitnas.training.uncompiled import SGD, AdamW

KINDS: dict[str, tuple[type[Any], type[Any], dict[str, Any]]] = {
    "adamw": (AdamW, torch.optim.AdamW, {"lr": 0.1, "weight_decay": 0.5, "fused": True}),
    "sgd": (SGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
}


def weights_after_steps(make: Callable[[Any], torch.optim.Optimizer]) -> list[torch.Tensor]:
    """Three steps, a checkpoint that another optimizer reads, and three more with it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    groups = [{"params": [*part.parameters()]} for part in model]
    optimizer = make(groups)
    for step in range(6):
        if step == 3:
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = make(groups)
            optimizer.load_state_dict(state)
        optimizer.zero_grad()
        model(torch.randn(3, 4)).square().sum().backward()
        optimizer.step()
    return [weight.detach() for weight in model.parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_checkpoints_are_pytorch_s_to_the_bit(kind: str) -> None:
    ours, theirs, how = KINDS[kind]
    found = weights_after_steps(lambda groups: ours(groups, **how))
    assert all(map(torch.equal, found, weights_after_steps(lambda groups: theirs(groups, **how))))


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_keeps_no_graph(kind: str) -> None:
    """Without a fused kernel, a step that kept one would be an error."""
    ours, _, _ = KINDS[kind]
    weight = nn.Parameter(torch.ones(3))
    optimizer = ours([weight], lr=0.1)
    weight.grad = torch.ones(3)
    optimizer.step()
    assert bool((weight < 1).all())
    assert weight.is_leaf
    assert weight.grad.grad_fn is None


STEP = """
import sys, torch
from vitnas.config.recipe import Recipe
from vitnas.training.optim import OPTIMIZERS, make_optimizer
for kind in ("adamw", "muon", "sgd"):
    model = torch.nn.Linear(4, 4)
    optimizer = make_optimizer(model, 0.1, 0.1, kind)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
print(*{"torch._dynamo", "timm", "torchvision"} & set(sys.modules))
"""


def test_a_step_does_not_import_the_compiler() -> None:
    command = [sys.executable, "-c", STEP]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stdout.split()
