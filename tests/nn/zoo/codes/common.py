"""What the codes share, and how they get weights that show a wrong mapping."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

_Code = TypeVar("_Code", bound=nn.Module)


def bare(**parts: nn.Module) -> nn.Module:
    """A module that has parts under names and computes nothing itself."""
    module = nn.Module()
    for name, part in parts.items():
        module.add_module(name, part)
    return module


def heads_of(x: Tensor, heads: int) -> Tensor:
    """`(B, N, h * d)` -> `(B, h, N, d)`."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(1, 2)


def tokens_of(x: Tensor) -> Tensor:
    """`(B, h, N, d)` -> `(B, N, h * d)`."""
    return x.transpose(1, 2).flatten(2)


def filled(code: _Code, seed: int = 0) -> _Code:
    """`code` in eval mode with every number drawn: no two tensors alike, none at its default.

    Spread so that scores are of order one and attention is not flat: linear layers keep variances,
    norms, scales and statistics lie around one.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*code.named_parameters(), *code.named_buffers()]:
            if not tensor.is_floating_point():
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            tensor.copy_(_spread(name, noise))
    return code.eval()


def _spread(name: str, noise: Tensor) -> Tensor:
    last = name.split(".")[-1]
    if last == "running_var":
        return 0.5 + noise.abs()
    if last == "weight" and noise.dim() > 1:
        return noise / noise[0].numel() ** 0.5
    if last == "k":
        return noise
    around_one = last in ("weight", "scale") or "coefficient" in name
    return around_one + 0.2 * noise
