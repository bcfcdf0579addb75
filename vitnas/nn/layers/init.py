"""Initial weights."""

from __future__ import annotations

from itertools import product

import numpy as np
import torch
from timm.layers import trunc_normal_
from torch import Tensor, nn

STD = 0.02
"""Standard deviation of every truncated normal."""


def init_linear(module: nn.Module) -> None:
    """For `nn.Module.apply`: linear weights truncated normal, their biases zero; ViT's custom.

    Convolutions keep PyTorch's default. Position tables, class token and static keys are set
    where they are made.
    """
    if isinstance(module, nn.Linear) and not module.weight.is_meta:  # which has nothing to fill
        trunc_normal_(module.weight, std=STD)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def fill_with_cosines(weight: Tensor) -> None:
    """Make the first filters of a convolution those of the discrete cosine transform, in place.

    The transform is over channels, rows and columns (DCT-II, each filter of norm 1, orthogonal to
    the others). Filters come by the sum of their three frequencies, the mean of all pixels first.
    Where there are more filters than numbers in one of them, the others keep their weights.

    Args:
        weight: `(filters, C, k, k)`.
    """
    if weight.is_meta:  # which has nothing to fill
        return
    from scipy.fft import dct  # imported here: other networks do not need it

    sides = weight.shape[1:]
    waves = [torch.from_numpy(dct(np.eye(side), axis=0, norm="ortho")) for side in sides]
    filters = torch.einsum("ac,bh,dw->abdchw", *waves)
    orders = sorted(product(*map(range, sides)), key=lambda order: (sum(order), order))
    for filter_, frequencies in zip(weight, orders, strict=False):
        filter_.copy_(filters[frequencies])
