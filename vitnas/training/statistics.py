"""BatchNorm's statistics of the network as it is scored."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def measure_statistics(model: nn.Module, batches: Iterable[Tensor]) -> None:
    """Give each BatchNorm the mean and variance of its inputs, as plain means over some batches.

    In a training PyTorch moves them by a tenth a step. So after an epoch they are those of earlier
    weights, from which the last ones differ much in a short training (docs/proxy.md).

    All other layers are in eval mode: nothing is dropped. A network without BatchNorm sees no
    batch. No randomness.

    `torch.optim.swa_utils.update_bn` is not called: it drops as in training, and each layer reads
    its counter from the device in each pass.

    Source: Wu and Johnson, "Rethinking 'Batch' in BatchNorm", section 3 (PreciseBN).

    Args:
        model: the network, which is left in eval mode. A layer that keeps no statistics is left
            alone, and each layer keeps its momentum.
        batches: images `(B, C, H, W)` on the model's device, as in training.
    """
    model.eval()
    norms = [
        module
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats
    ]
    with ExitStack() as stack, torch.no_grad():
        for norm in norms:
            stack.callback(norm.eval)
            stack.callback(setattr, norm, "momentum", norm.momentum)
            stack.callback(norm.train().register_forward_pre_hook(_PlainMean()).remove)
        for x in batches if norms else ():
            model(x)


class _PlainMean:
    """Called before each pass of a layer: gives the n-th one the share 1 / n."""

    def __init__(self) -> None:
        self._seen = 0

    def __call__(self, norm: nn.Module, _: object) -> None:
        self._seen += 1
        norm.momentum = 1 / self._seen  # type: ignore[assignment]
