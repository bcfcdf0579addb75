"""Training a recursive network together with itself, passed through once.

Source: SReT, Section 5.7 and Figure 8d. The paper says that the deep branch has the recursive
blocks, that the shallow one has "the blocks without sharing the weights on depth", re-used from
the deep one, that both take their inputs from the same stem block, and that the shallow one is
supervised. Our reading: the shallow branch passes through every block once, with its first pass's
token groups and its first non-linear layer, and each branch has its own loss through the shared
classifier. There are no parameters of its own, and what is exported is the deep network.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn

from vitnas.nn.recursion import RecursiveBlock


def has_shallow_branch(model: nn.Module) -> bool:
    """Whether a block of `model` is passed through more than once."""
    return any(isinstance(m, RecursiveBlock) and m.passes > 1 for m in model.modules())


@contextmanager
def one_pass(model: nn.Module) -> Iterator[None]:
    """Inside, every recursive block is passed through once: its block, then its first NLL."""
    with ExitStack() as stack:
        for module in model.modules():
            if isinstance(module, RecursiveBlock):
                stack.callback(setattr, module, "passes", module.passes)
                module.passes = 1
        yield


@contextmanager
def kept_stem(model: nn.Module) -> Iterator[list[Tensor]]:
    """Inside, every forward pass appends its stem's output to the list."""
    kept: list[Tensor] = []
    stem = model.get_submodule("stem")
    handle = stem.register_forward_hook(lambda _module, _args, output: kept.append(output))
    try:
        yield kept
    finally:
        handle.remove()


def shallow_logits(model: nn.Module, x: Tensor, stem_output: Tensor) -> Tensor:
    """Logits `(B, classes)` of the branch that passes through every block once.

    Args:
        model: the recursive network.
        x: images `(B, C, H, W)`.
        stem_output: what the deep branch's stem made of `x`. It is used again and not made anew,
            so batch norms in the stem see each batch once.
    """
    with one_pass(model), _answering(model.get_submodule("stem"), stem_output):
        logits: Tensor = model(x)
    return logits


@contextmanager
def _answering(module: nn.Module, output: Tensor) -> Iterator[None]:
    """Inside, `module` gives `output` whatever it is asked."""
    module.forward = lambda *_args, **_kwargs: output
    try:
        yield
    finally:
        del module.forward
