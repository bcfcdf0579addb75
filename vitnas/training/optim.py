"""Optimizers as vision transformers want them: no decay on vectors, warm-up, half a cosine."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from vitnas.config.recipe import Recipe
from vitnas.config.training import ProxyConfig


def make_optimizer(
    model: nn.Module, lr: float, weight_decay: float, kind: str = "adamw"
) -> torch.optim.Optimizer:
    """AdamW over `model`, fused into one kernel a step; or `lamb`, or `sgd` with momentum.

    Vectors and scalars (norms, biases, residual scales) and what `model.no_weight_decay()` names
    are not decayed.
    """
    exempt = set(getattr(model, "no_weight_decay", set)())
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (kept if parameter.ndim <= 1 or name in exempt else decayed).append(parameter)
    groups: list[dict[str, Any]] = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    return _KINDS[kind]([group for group in groups if group["params"]], lr)


def learning_rate(proxy: ProxyConfig, step: int, steps_per_epoch: int) -> float:
    """The rate of one step, `step` counted from 0 over the whole training.

    Rises linearly over `warmup_epochs` (at most half of the training), then falls along half a
    cosine that would reach zero one step after the last.
    """
    total = proxy.epochs * steps_per_epoch
    warmup = min(round(proxy.warmup_epochs * steps_per_epoch), total // 2)
    if step < warmup:
        return proxy.lr * (step + 1) / (warmup + 1)
    return proxy.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def recipe_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """As `learning_rate`, between `min_lr` and `lr` instead of zero and `lr`."""
    share = learning_rate(recipe, step, steps_per_epoch) / recipe.lr
    return recipe.min_lr + (recipe.lr - recipe.min_lr) * share


_Groups = list[dict[str, Any]]


def _lamb(groups: _Groups, lr: float) -> torch.optim.Optimizer:
    from timm.optim import Lamb

    optimizer: torch.optim.Optimizer = Lamb(groups, lr=lr)
    return optimizer


_KINDS: dict[str, Callable[[_Groups, float], torch.optim.Optimizer]] = {
    "adamw": lambda groups, lr: torch.optim.AdamW(groups, lr=lr, fused=True),
    "lamb": _lamb,
    "sgd": lambda groups, lr: torch.optim.SGD(groups, lr=lr, momentum=0.9, nesterov=True),
}
