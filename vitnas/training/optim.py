"""Optimizers as vision transformers want them: no decay on vectors, warm-up, half a cosine."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from vitnas.config.recipe import Optimizer, Recipe
from vitnas.training.muon import Muon
from vitnas.training.uncompiled import SGD, AdamW


def make_optimizer(
    model: nn.Module,
    lr: float,
    weight_decay: float,
    kind: Optimizer = "adamw",
    layer_decay: float = 1.0,
) -> torch.optim.Optimizer:
    """The optimizer `kind` over `model`; AdamW is fused into one kernel a step.

    Vectors and scalars (norms, biases, residual scales) and what `model.no_weight_decay()` names
    are not decayed. With `muon`, the weights of linear layers and of convolutions over all
    channels are in a group of their own.

    With a `layer_decay` below 1, each layer has groups of its own, whose `lr_scale` says what the
    rate is to be multiplied by.
    """
    exempt = set(getattr(model, "no_weight_decay", set)())
    groups: dict[str, _Group] = {
        "matrices": {"params": [], "weight_decay": weight_decay, "matrices": True},
        "decayed": {"params": [], "weight_decay": weight_decay},
        "kept": {"params": [], "weight_decay": 0.0},
    }
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            if parameter.ndim <= 1 or name in exempt:
                group = "kept"
            else:
                group = "matrices" if kind == "muon" and is_matrix(parameter) else "decayed"
            groups[group]["params"].append(parameter)
    found = [group for group in groups.values() if group["params"]]
    if layer_decay < 1:
        scales = layer_scales(model, layer_decay)
        found = [part for group in found for part in _by_scale(group, scales)]
    return OPTIMIZERS[kind](found, lr)


def layer_scales(model: nn.Module, decay: float) -> dict[nn.Parameter, float]:
    """The share of the rate that each parameter has: 1 in the head, and `decay` times as much with
    each layer towards the stem.

    The layers are those of timm's `group_matcher`, where the last norm is of the last block, or the
    modules in their order where the model has none.
    """
    from timm.models import group_parameters

    if hasattr(model, "group_matcher"):
        matcher: Any = model.group_matcher
        layers = group_parameters(model, matcher(coarse=False), reverse=True)
    else:
        modules = {name.rpartition(".")[0]: None for name, _ in model.named_parameters()}
        number = {module: index for index, module in enumerate(modules)}
        layers = {n: number[n.rpartition(".")[0]] for n, _ in model.named_parameters()}
    last = max(layers.values())
    parameters = dict(model.named_parameters())
    return {parameters[name]: decay ** (last - layer) for name, layer in layers.items()}


def _by_scale(group: _Group, scales: Mapping[nn.Parameter, float]) -> Iterator[_Group]:
    """A group's parameters in groups of one scale each, the head's first."""
    for scale in sorted({scales[p] for p in group["params"]}, reverse=True):
        chosen = [p for p in group["params"] if scales[p] == scale]
        yield {**group, "params": chosen, "lr_scale": scale}


def is_matrix(parameter: nn.Parameter) -> bool:
    """Whether it mixes channels: a linear layer's weight, or a kernel that is not depthwise."""
    return parameter.ndim in (2, 4) and parameter.shape[1] > 1


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int) -> float:
    """The rate of one step, `step` counted from 0 over the whole training.

    It rises linearly from `min_lr` over `warmup_epochs` (at most half of the training), and falls
    along half a cosine that would reach `min_lr` one step after its last. There it stays during the
    cool-down.
    """
    total, reach = recipe.epochs * steps_per_epoch, recipe.lr - recipe.min_lr
    warmup = min(round(recipe.warmup_epochs * steps_per_epoch), total // 2)
    cooldown = min(round(recipe.cooldown_epochs * steps_per_epoch), total - warmup)
    if step < warmup:
        return recipe.min_lr + reach * (step + 1) / (warmup + 1)
    if step >= total - cooldown:
        return recipe.min_lr
    falling = total - cooldown - warmup
    return recipe.min_lr + reach * 0.5 * (1 + math.cos(math.pi * (step - warmup) / falling))


def is_capturable(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a CUDA graph can hold its steps: SGD and LAMB read their rate on the host."""
    return isinstance(optimizer, torch.optim.AdamW)


def set_rate(optimizer: torch.optim.Optimizer, rate: float, place: torch.device | None) -> None:
    """Give every group the `rate` times its `lr_scale`.

    Args:
        optimizer: any; with a `place`, one that is capturable.
        rate: of a group without a scale.
        place: the parameters' device, with its number, where the rate is a tensor that stays the
            same one, as a captured step reads it; None = it is a number.
    """
    for group in optimizer.param_groups:
        value, held = rate * group.get("lr_scale", 1.0), group["lr"]
        if place is None:
            group["lr"] = value
        elif isinstance(held, Tensor) and held.device == place:
            held.fill_(value)
        else:  # a new optimizer, or one from a checkpoint
            group |= {"lr": torch.tensor(value, device=place), "capturable": True}


@torch.no_grad()
def clip_gradients(parameters: Sequence[nn.Parameter], most: float) -> None:
    """Scale all gradients so that their global norm is `most`, where it is more.

    As `torch.nn.utils.clip_grad_norm_` to the bit, without its steps of Python for each gradient.
    """
    gradients = [one.grad for one in parameters if one.grad is not None]
    if not gradients:
        return
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
    factor = (most / (norm + 1e-6)).clamp_(max=1.0)
    torch._foreach_mul_(gradients, factor)


_Group = dict[str, Any]
_Groups = list[_Group]


def _lamb(groups: _Groups, lr: float) -> torch.optim.Optimizer:
    from timm.optim import Lamb

    optimizer: torch.optim.Optimizer = Lamb(groups, lr=lr)
    return optimizer


OPTIMIZERS: dict[Optimizer, Callable[[_Groups, float], torch.optim.Optimizer]] = {
    "adamw": lambda groups, lr: AdamW(groups, lr=lr, fused=True),
    "lamb": _lamb,
    "muon": Muon,
    "sgd": lambda groups, lr: SGD(groups, lr=lr, momentum=0.9, nesterov=True),
}
"""What makes each optimizer from groups of parameters and a rate; others can be added."""
