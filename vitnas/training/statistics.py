"""Running statistics of BatchNorm that a short training can settle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class SettledStatistics:
    """Makes the running statistics of a model plain means over its first batches.

    PyTorch starts them at mean 0 and variance 1 and moves them by a tenth a step. After a training
    of 18 steps, 15 % of them is still the start, and the network scores near chance. Here batch n
    moves them by 1/n as long as that is more than the layer's own momentum: the start is gone after
    the first step, and after ten steps (momentum 0.1) it is PyTorch's rule.

    n is the layer's own `num_batches_tracked`, so a training that resumes, or starts from trained
    weights, continues where they were. It is read before the first step and then counted here:
    reading it in each pass would wait for the device. Outside of `step` the layers are as before.

    Args:
        model: the network; a layer without a momentum or a counter is left alone.
    """

    def __init__(self, model: nn.Module) -> None:
        self._norms = [
            norm
            for norm in model.modules()
            if isinstance(norm, _BatchNorm) and norm.momentum and norm.track_running_stats
        ]
        self._young: dict[nn.Module, _Young] | None = None

    @property
    def are_settled(self) -> bool:
        """Whether every layer moves by its own momentum now."""
        return self._young is not None and not self._young

    @contextmanager
    def step(self) -> Iterator[None]:
        """What the forward pass of a step of training runs in."""
        young = _still_young(_read(self._norms) if self._young is None else self._young)
        with ExitStack() as stack:
            for norm, one in young.items():
                stack.callback(setattr, norm, "momentum", one.momentum)
                stack.callback(norm.register_forward_pre_hook(one.count).remove)
            yield
        self._young = _still_young(young)


@dataclass
class _Young:
    """A layer's own momentum, and how many batches are in its running statistics."""

    momentum: float
    seen: int

    def count(self, norm: nn.Module, _: object) -> None:
        """Give the next batch its share of a plain mean."""
        self.seen += 1
        norm.momentum = 1 / self.seen  # type: ignore[assignment]


def _still_young(norms: Mapping[nn.Module, _Young]) -> dict[nn.Module, _Young]:
    """Those whose next batch counts more than their own momentum."""
    return {norm: one for norm, one in norms.items() if one.momentum * (one.seen + 1) < 1}


def _read(norms: Sequence[_BatchNorm]) -> dict[nn.Module, _Young]:
    """Every layer with its momentum and counter, all read at once."""
    counters = [norm.get_buffer("num_batches_tracked") for norm in norms]
    seen = torch.stack(counters).tolist() if counters else []
    return {
        norm: _Young(norm.momentum or 0.0, number) for norm, number in zip(norms, seen, strict=True)
    }
