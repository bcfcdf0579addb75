"""AdamW as vision transformers want it: no decay on vectors, warm-up, then half a cosine."""

from __future__ import annotations

import math

import torch
from torch import nn

from vitnas.config.training import ProxyConfig


def make_optimizer(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.AdamW:
    """AdamW over `model`, fused into one kernel a step.

    Vectors and scalars (norms, biases, residual scales) and what `model.no_weight_decay()` names
    are not decayed.
    """
    exempt = set(getattr(model, "no_weight_decay", set)())
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (kept if parameter.ndim <= 1 or name in exempt else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=lr, fused=True)


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
