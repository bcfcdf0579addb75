"""Muon: a matrix steps along the nearest orthogonal matrix, all else steps as in AdamW."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

MATRIX_RATE = 3.0
"""Matrices have so many times the rate of vectors: one `lr` is then best for both kinds."""
_MOMENTUM = 0.95
_STEPS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)


class Muon(torch.optim.AdamW):
    """AdamW, except in groups with `matrices: true`, whose parameters step as in Muon.

    For a gradient G of shape (out, in, ...), seen as the matrix (out, n), and its momentum M:

        M <- 0.95 M + 0.05 G,  U = the orthogonal matrix nearest to 0.05 G + 0.95 M,
        W <- (1 - r decay) W - r max(1, out / n)^0.5 U,  r = 3 lr

    U is found by five Newton-Schulz steps, for all matrices of one shape at once: networks of a
    search are small, and single matrices would cost more calls than arithmetic. The size of a step
    does not depend on the gradient's, nor on how wide or deep the network is. So one rate suits
    networks of many shapes.

    Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).

    Args:
        groups: groups of parameters; those of a group with `matrices: true` have two or more
            dimensions.
        lr: the rate of all groups.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, lr=lr, fused=True)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step. The gradients of matrices are used up: they are None afterwards."""
        with torch.enable_grad():
            loss = None if closure is None else closure()
        for group in self.param_groups:
            if group.get("matrices"):
                self._step_matrices(group)
        super().step()
        return loss

    def _step_matrices(self, group: dict[str, Any]) -> None:
        by_shape: dict[tuple[int, int], list[nn.Parameter]] = defaultdict(list)
        for parameter in group["params"]:
            if parameter.grad is not None:
                by_shape[len(parameter), parameter[0].numel()].append(parameter)
        rate = MATRIX_RATE * group["lr"]
        for shape, parameters in by_shape.items():
            updates = orthogonal(torch.stack([self._momentum(p).view(shape) for p in parameters]))
            step = rate * math.sqrt(max(1.0, shape[0] / shape[1]))
            for parameter, update in zip(parameters, updates, strict=True):
                parameter.mul_(1 - rate * group["weight_decay"])
                parameter.sub_(update.view_as(parameter), alpha=step)
                parameter.grad = None  # AdamW leaves parameters without a gradient alone

    def _momentum(self, parameter: nn.Parameter) -> Tensor:
        """Nesterov's: the gradient updates its running mean, then the mean is mixed into it."""
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if not state:  # AdamW's names, so that it reads them from a checkpoint
            state["step"] = torch.zeros(())
            state["exp_avg"] = torch.zeros_like(parameter)
        state["step"] += 1
        mean: Tensor = state["exp_avg"].lerp_(gradient, 1 - _MOMENTUM)
        return gradient.lerp(mean, _MOMENTUM)


def orthogonal(matrices: Tensor) -> Tensor:
    """About the nearest matrices (B, m, n) with orthonormal rows, or columns where m > n.

    Their singular values lie between 0.7 and 1.2, except those that are nearly zero in `matrices`.
    """
    a, b, c = _QUINTIC
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = matrices if wide else matrices.mT
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-7)
    for _ in range(_STEPS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT
