"""The MLP over channels: of a block, and of SReT's non-linear layer."""

from __future__ import annotations

from typing import Literal

from timm.layers import Mlp
from torch import nn

from vitnas.nn.layers.activation import ACTIVATIONS


def build_mlp(
    dim: int,
    ratio: float,
    act: Literal["gelu", "star_relu"] = "gelu",
    bias: bool = True,
    drop: float = 0.0,
) -> nn.Module:
    """Linear C -> int(ratio * C), activation, Linear back; timm's `Mlp`.

    Args:
        dim: channels C.
        ratio: hidden channels per channel; the product is rounded down, as in SReT's code
            (C = 64 and ratio 3.6 have 230 hidden channels).
        act: `gelu` or MetaFormer's `star_relu`.
        bias: of both linear layers.
        drop: dropout after the activation and after the second layer.

    MACs: ``N * 2 * C * int(ratio * C)``
    """
    hidden = int(ratio * dim)
    mlp: nn.Module = Mlp(dim, hidden, act_layer=ACTIVATIONS[act], bias=bias, drop=drop)
    return mlp
