"""A network's mode, changed temporarily."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """A context in eval mode without gradients. At its end every module has its mode back."""
    before = [(module, module.training) for module in network.modules()]
    try:
        network.eval()
        with torch.no_grad():
            yield
    finally:
        for module, mode in before:
            module.training = mode
