"""How a branch joins the identity: plainly, or with learnable scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from vitnas.config.parts import Residual


class DropPath(nn.Module):
    """A branch that some images skip in training; for the others it is scaled up in return.

    Source: Huang et al., "Deep Networks with Stochastic Depth"; the same numbers as timm's layer of
    this name.

    Args:
        drop_prob: the probability that an image skips it, 0 to 1.

    Shape: `(B, ...)` -> the same.
    Randomness: which images, in training only.
    """

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, branch: Tensor) -> Tensor:
        if not self.training or self.drop_prob == 0.0:
            return branch
        kept = 1.0 - self.drop_prob
        images = branch.new_empty(branch.shape[0], *[1] * (branch.ndim - 1)).bernoulli_(kept)
        return branch * (images.div_(kept) if kept > 0.0 else images)


class PlainResidual(nn.Module):
    """identity + branch, without parameters."""

    def forward(self, identity: Tensor, branch: Tensor) -> Tensor:
        return identity + branch


class NoBranch(nn.Module):
    """identity, whatever the branch; without parameters."""

    def forward(self, identity: Tensor, branch: Tensor) -> Tensor:
        return identity


class LearnableResidual(nn.Module):
    """alpha * branch + beta * identity: learnable scalars that start at 1.

    Source: SReT, Eq. 9 and 10 (LRC): alpha and beta around the token mixer, gamma and delta
    around the MLP, zeta and theta around the non-linear layer are three instances of this class.
    The scalar is applied outside drop-path: `branch` has already been dropped. Table 13 compares
    scalars on both, on the branch alone and on the identity alone.

    Args:
        on: which of the two have a scalar.
    """

    branch: nn.Parameter | None
    identity: nn.Parameter | None

    def __init__(self, *on: Literal["branch", "identity"]) -> None:
        super().__init__()
        for name in ("branch", "identity"):
            self.register_parameter(name, nn.Parameter(torch.ones(1)) if name in on else None)

    def forward(self, identity: Tensor, branch: Tensor) -> Tensor:
        scaled = branch if self.branch is None else self.branch * branch
        return scaled + (identity if self.identity is None else self.identity * identity)


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


_KINDS: dict[Residual, Callable[[int], nn.Module]] = {
    "plain": lambda dim: PlainResidual(),
    "lrc": lambda dim: LearnableResidual("branch", "identity"),
    "lrc_branch": lambda dim: LearnableResidual("branch"),
    "lrc_identity": lambda dim: LearnableResidual("identity"),
    "scale": ScaledResidual,
}


def build_residual(kind: Residual, dim: int) -> nn.Module:
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
