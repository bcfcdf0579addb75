"""How a branch joins the identity: plainly, or with learnable scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn


class PlainResidual(nn.Module):
    """identity + branch, without parameters."""

    def forward(self, identity: Tensor, branch: Tensor) -> Tensor:
        return identity + branch


class LearnableResidual(nn.Module):
    """alpha * branch + beta * identity: a learnable scalar on each, starting at 1.

    Source: SReT, Eq. 9 and 10 (LRC): alpha and beta around the token mixer, gamma and delta
    around the MLP, zeta and theta around the non-linear layer are three instances of this class.
    The scalar is applied outside drop-path: `branch` has already been dropped.
    """

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Parameter(torch.ones(1))
        self.identity = nn.Parameter(torch.ones(1))

    def forward(self, identity: Tensor, branch: Tensor) -> Tensor:
        return self.branch * branch + self.identity * identity


class ScaledResidual(nn.Module):
    """scale * identity + branch: one learnable scale per channel, starting at 1.

    Source: MetaFormer's `res_scale`, which CAFormer has in its last two stages.

    Args:
        dim: channels C.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, identity: Tensor, branch: Tensor) -> Tensor:
        return self.scale * identity + branch


_KINDS: dict[str, Callable[[int], nn.Module]] = {
    "plain": lambda dim: PlainResidual(),
    "lrc": lambda dim: LearnableResidual(),
    "scale": ScaledResidual,
}


def build_residual(kind: Literal["plain", "lrc", "scale"], dim: int) -> nn.Module:
    """The residual connection named `kind` around a branch of `dim` channels."""
    return _KINDS[kind](dim)


def residual_scales(model: nn.Module) -> dict[str, float]:
    """The learnable residual coefficients (SReT, Eq. 9 and 10) of `model`, by name; may be none."""
    return {
        f"{prefix}.{name}": float(parameter.detach())
        for prefix, module in model.named_modules()
        if isinstance(module, LearnableResidual)
        for name, parameter in module.named_parameters()
    }
