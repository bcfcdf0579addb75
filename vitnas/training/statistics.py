"""Running statistics of BatchNorm that a short training can settle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class SettledStatistics:
    """Makes the running statistics of a model plain means over its first batches.

    PyTorch starts them at mean 0 and variance 1 and moves them by a tenth a step. After a training
    of 18 steps, 15 % of them is still the start, and the network scores near chance. Here batch n
    moves them by 1/n as long as that is more than the layer's own momentum: the start is gone after
    the first step, and after ten steps (momentum 0.1) it is PyTorch's rule.

    n is the layer's own `num_batches_tracked`, so a training that resumes, or starts from trained
    weights, continues where they were. Outside of `step` the layers are as before.

    Args:
        model: the network; a layer without a momentum or a counter is left alone.
    """

    def __init__(self, model: nn.Module) -> None:
        self._young = {
            norm: norm.momentum
            for norm in model.modules()
            if isinstance(norm, _BatchNorm) and norm.momentum and norm.track_running_stats
        }

    @contextmanager
    def step(self) -> Iterator[None]:
        """What the forward pass of a step of training runs in."""
        self._young = {
            norm: momentum
            for norm, momentum in self._young.items()
            if momentum * (_seen(norm) + 1) < 1
        }
        for norm in self._young:
            norm.momentum = None  # PyTorch's cumulative mean
        try:
            yield
        finally:
            for norm, momentum in self._young.items():
                norm.momentum = momentum


def _seen(norm: _BatchNorm) -> int:
    """How many batches are in the running statistics."""
    assert isinstance(norm.num_batches_tracked, Tensor)
    return int(norm.num_batches_tracked)
