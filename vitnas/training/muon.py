"""Muon: a matrix steps along the nearest orthogonal matrix, all else steps as in AdamW."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from vitnas.training.uncompiled import AdamW

MATRIX_RATE = 3.0
"""Matrices have so many times the rate of vectors: one `lr` is then best for both kinds."""
_MOMENTUM = 0.95
_STEPS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)
_CALLS = 2_000_000  # multiply-adds that take as long as the calls for a stack do


class Muon(AdamW):
    """AdamW, except in groups with `matrices: true`, whose parameters step as in Muon.

    For a gradient G of shape (out, in, ...), seen as the matrix (out, n), and its momentum M:

        M <- 0.95 M + 0.05 G,  U = the orthogonal matrix nearest to 0.05 G + 0.95 M,
        W <- (1 - r decay) W - r max(1, out / n)^0.5 U,  r = 3 lr

    U is found by five Newton-Schulz steps, for matrices of similar sizes at once (see `Pack`). The
    size of a step does not depend on the gradient's, nor on how wide or deep the network is. So one
    rate suits networks of many shapes.

    Source: Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024).

    Args:
        groups: groups of parameters; those of a group with `matrices: true` have two or more
            dimensions.
        lr: the rate of all groups.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, lr=lr, fused=True)
        self._packs: dict[tuple[int, ...], Pack] = {}

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
        moving = [parameter for parameter in group["params"] if parameter.grad is not None]
        if not moving:
            return
        members = tuple(map(id, moving))
        if members not in self._packs:
            self._packs[members] = Pack(moving)
        rate = MATRIX_RATE * group["lr"]
        updates = self._packs[members].orthogonal(self._momentum(moving))
        torch._foreach_mul_(moving, 1 - rate * group["weight_decay"])
        if isinstance(rate, Tensor):  # a captured step reads it on the device
            torch._foreach_mul_(updates, -rate)
            torch._foreach_add_(moving, updates)
        else:
            torch._foreach_add_(moving, updates, alpha=-rate)
        for parameter in moving:
            parameter.grad = None  # AdamW leaves parameters without a gradient alone

    def _momentum(self, parameters: list[nn.Parameter]) -> list[Tensor]:
        """Nesterov's: the gradients update their running means, then the means are mixed in."""
        states = [self.state[parameter] for parameter in parameters]
        for state, parameter in zip(states, parameters, strict=True):
            if not state:  # AdamW's names, so that it reads them from a checkpoint
                state["step"] = torch.zeros(())  # it is not counted: nothing depends on it
                state["exp_avg"] = torch.zeros_like(parameter)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        means = [state["exp_avg"] for state in states]
        torch._foreach_lerp_(means, gradients, 1 - _MOMENTUM)
        torch._foreach_lerp_(gradients, means, _MOMENTUM)
        return gradients


class Pack:
    """Places for matrices in few stacks, so that a step takes few calls and not some a matrix.

    The networks of a search are small: a call costs more than its arithmetic. So matrices of
    similar sizes share a stack. A side of up to 64 is filled with zeros up to 16, 32 or 64, and a
    matrix with more rows than columns lies on its side. Neither changes its orthogonal matrix.
    Stacks of which each has little to do become one (see `_shared`).

    Args:
        parameters: of any shape (out, in, ...), each seen as the matrix (out, n).
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        sides = [(len(one), one[0].numel()) for one in parameters]
        sizes = [(min(pair), max(pair)) for pair in ((_filled(m), _filled(n)) for m, n in sides)]
        shared = _shared(Counter(sizes))
        members = [shared[size] for size in sizes]
        device = parameters[0].device
        stacks = {
            size: torch.zeros(number, *size, device=device)
            for size, number in Counter(members).items()
        }
        factors = {
            size: torch.ones(len(stack), 1, 1, device=device) for size, stack in stacks.items()
        }
        free = {size: iter(zip(stacks[size], factors[size], strict=True)) for size in stacks}
        self._stacks = [(stacks[size], factors[size]) for size in stacks]
        self._places = []
        for size, one, (rows, columns) in zip(members, parameters, sides, strict=True):
            matrix, factor = next(free[size])
            factor.fill_(math.sqrt(max(1.0, rows / columns)))
            self._places.append(_place(matrix, one))

    def orthogonal(self, values: list[Tensor]) -> list[Tensor]:
        """max(1, out / n)^0.5 U of each value; valid until the next call.

        Args:
            values: in the order and the shapes of the parameters.
        """
        torch._foreach_copy_(self._places, values)
        for stack, factors in self._stacks:
            torch.mul(orthogonal(stack), factors, out=stack)
        return self._places


_Size = tuple[int, int]


def _shared(counts: Counter[_Size]) -> dict[_Size, _Size]:
    """The size of the stack for each size of matrices, of which there are so many.

    Two stacks become one, as wide and as high as both, where multiplying the added zeros takes less
    time than the calls for a stack.
    """
    counts, found = Counter(counts), {size: size for size in counts}
    while len(counts) > 1:
        added, one, other = min(
            (_work(_hull(a, b)) * (m + n) - _work(a) * m - _work(b) * n, a, b)
            for (a, m), (b, n) in combinations(counts.items(), 2)
        )
        if added > _CALLS:
            break
        number = counts.pop(one) + counts.pop(other)
        counts[_hull(one, other)] += number
        found = {s: _hull(one, other) if t in (one, other) else t for s, t in found.items()}
    return found


def _hull(one: _Size, other: _Size) -> _Size:
    return max(one[0], other[0]), max(one[1], other[1])


def _work(size: _Size) -> int:
    """Multiply-adds for the orthogonal matrix of one of this size."""
    rows, columns = size
    return _STEPS * rows * rows * (2 * columns + rows)


def _filled(side: int) -> int:
    return side if side > 64 else max(16, 1 << (side - 1).bit_length())


def _place(matrix: Tensor, parameter: Tensor) -> Tensor:
    """A view into `matrix` that has the shape of `parameter`."""
    rows, columns = len(parameter), parameter[0].numel()
    view = matrix[:rows, :columns] if rows <= columns else matrix[:columns, :rows].mT
    place: Tensor = view.unflatten(1, parameter.shape[1:])
    return place


def orthogonal(matrices: Tensor) -> Tensor:
    """About the nearest matrices (B, m, n) with orthonormal rows, or columns where m > n.

    Their singular values lie between 0.7 and 1.2, except those that are nearly zero in `matrices`.
    """
    a, b, c = _QUINTIC
    wide = matrices.shape[-2] <= matrices.shape[-1]
    x = matrices if wide else matrices.mT
    x = x / torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True).clamp_min_(1e-7)
    for _ in range(_STEPS):
        square = torch.bmm(x, x.mT)  # a step takes some ten calls, so none may do more than needed
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT
