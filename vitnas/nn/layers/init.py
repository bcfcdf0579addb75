"""Initial weights."""

from __future__ import annotations

from timm.layers import trunc_normal_
from torch import nn

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
