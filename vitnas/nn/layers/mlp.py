"""The MLP over channels: of a block, and of SReT's non-linear layer."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from vitnas.nn.layers.activation import ACTIVATIONS


class Mlp(nn.Module):
    """Linear, activation, Linear; dropout after the activation and after the second layer.

    Args:
        dim: channels C.
        hidden: channels between the two layers.
        act: makes the activation.
        bias: of both linear layers.
        drop: probability of dropout.

    Shape: `(..., C)` -> the same.
    Randomness: dropout, in training only.
    """

    def __init__(
        self, dim: int, hidden: int, act: type[nn.Module], bias: bool = True, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden, bias)
        self.act = act()
        self.drop1 = nn.Dropout(drop)
        self.fc2 = nn.Linear(hidden, dim, bias)
        self.drop2 = nn.Dropout(drop)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.drop1(self.act(self.fc1(x)))
        out: Tensor = self.drop2(self.fc2(hidden))
        return out


def build_mlp(
    dim: int,
    ratio: float,
    act: Literal["gelu", "star_relu"] = "gelu",
    bias: bool = True,
    drop: float = 0.0,
) -> Mlp:
    """Linear C -> int(ratio * C), activation, Linear back.

    Args:
        dim: channels C.
        ratio: hidden channels per channel; the product is rounded down, as in SReT's code
            (C = 64 and ratio 3.6 have 230 hidden channels).
        act: `gelu` or MetaFormer's `star_relu`.
        bias: of both linear layers.
        drop: dropout after the activation and after the second layer.

    MACs: ``N * 2 * C * int(ratio * C)``
    """
    return Mlp(dim, int(ratio * dim), ACTIVATIONS[act], bias, drop)
