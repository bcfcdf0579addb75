"""Activations of the MLPs and of the convolutional mixers."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn


class StarReLU(nn.Module):
    """s * relu(x)^2 + b with two learnable scalars.

    Source: Yu et al., "MetaFormer Baselines for Vision", Eq. 1; they start at s = 1 and b = 0 as
    in timm, not at the paper's constants 0.8944 and -0.4472.

    Shape: any -> the same.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * torch.relu(x).square() + self.bias


class CReLU(nn.Module):
    """relu(x) and relu(-x) side by side: what a filter and its negative find, for one filter.

    Source: Shang et al., "Understanding and Improving Convolutional Neural Networks via
    Concatenated Rectified Linear Units", Section 2. With an odd C the last filter has no negative.

    Args:
        dim: channels C afterwards.

    Shape: `(B, halved(C), H, W)` -> `(B, C, H, W)`.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        positive = x.relu()
        negative = positive - x  # relu(-x), by an operator that every backend has
        return torch.cat([positive, negative[:, : self.dim - x.shape[1]]], dim=1)


class SquaredReLU(nn.Module):
    """relu(x)^2, the activation inside CAFormer's head (So et al., "Primer")."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x).square()


ACTIVATIONS: dict[Literal["gelu", "star_relu"], type[nn.Module]] = {
    "gelu": nn.GELU,
    "star_relu": StarReLU,
}

MAP_ACTIVATIONS: dict[Literal["softmax", "gelu", "relu", "star_relu"], type[nn.Module] | None] = {
    "softmax": None,
    "gelu": nn.GELU,
    "relu": nn.ReLU,
    "star_relu": StarReLU,
}
"""From logits to a map of attention; None for the softmax over its last axis."""

CONV_ACTIVATIONS: dict[Literal["relu6", "hard_swish", "silu"], type[nn.Module]] = {
    "relu6": nn.ReLU6,
    "hard_swish": nn.Hardswish,
    "silu": nn.SiLU,
}
