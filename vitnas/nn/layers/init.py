"""Initial weights."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

STD = 0.02
"""Standard deviation of every truncated normal."""


@torch.no_grad()
def truncated_normal_(tensor: Tensor) -> None:
    """Fill with a normal distribution of deviation `STD`, cut off at -2 and 2, in place.

    Numbers are uniform from -1 to 1, then through the inverse of the distribution. They are those
    of timm's `trunc_normal_` to the bit: 2 is so many deviations that nothing else is cut off.
    """
    tensor.uniform_(-1, 1).erfinv_().mul_(STD * math.sqrt(2)).clamp_(-2, 2)


def init_linear(module: nn.Module) -> None:
    """For `nn.Module.apply`: linear weights truncated normal, their biases zero; ViT's custom.

    Convolutions keep PyTorch's default. Position tables, class token and static keys are set
    where they are made.
    """
    if isinstance(module, nn.Linear) and not module.weight.is_meta:  # which has nothing to fill
        truncated_normal_(module.weight)
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
