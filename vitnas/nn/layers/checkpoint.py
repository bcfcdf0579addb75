"""Activations that are computed again in the backward pass instead of being kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

_Tap = TypeVar("_Tap")


def checkpointed(
    owner: nn.Module,
    run: Callable[..., Tensor],
    x: Tensor,
    taps: list[_Tap] | None,
) -> Tensor:
    """`run(x, taps=taps)`, which keeps only `x` and what it appends to `taps`.

    Gradients, random numbers and running statistics are those of a plain call: the second run
    draws the same random numbers and does not update the statistics of batch norms.

    Args:
        owner: the module of `run`.
        run: a function from tokens to tokens; it may read `taps` and append to it.
        x: tokens `(B, N, C)`.
        taps: the taps of earlier blocks, or None.
    """
    given = None if taps is None else tuple(taps)

    def whole(tokens: Tensor) -> tuple[Tensor, list[_Tap]]:
        found = None if given is None else list(given)
        out = run(tokens, taps=found)
        return out, [] if found is None or given is None else found[len(given) :]

    def contexts() -> tuple[Any, Any]:
        return nullcontext(), _frozen_statistics(owner)

    out, new = checkpoint(whole, x, use_reentrant=False, context_fn=contexts)
    if taps is not None:
        taps.extend(new)
    result: Tensor = out
    return result


@contextmanager
def _frozen_statistics(owner: nn.Module) -> Iterator[None]:
    """A context in which batch norms in training do not update their running statistics."""
    norms = [m for m in owner.modules() if isinstance(m, _BatchNorm) and m.training]
    before = [(norm.momentum, _count_of(norm)) for norm in norms]
    try:
        for norm in norms:
            norm.momentum = 0.0
        yield
    finally:
        for norm, (momentum, count) in zip(norms, before, strict=True):
            norm.momentum = momentum
            if norm.num_batches_tracked is not None and count is not None:
                norm.num_batches_tracked.copy_(count)


def _count_of(norm: _BatchNorm) -> Tensor | None:
    return None if norm.num_batches_tracked is None else norm.num_batches_tracked.clone()
