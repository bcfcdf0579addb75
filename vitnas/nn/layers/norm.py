"""Norms of tokens: over channels, with or without a bias, or over images and tokens."""

from __future__ import annotations

from torch import Tensor, nn

from vitnas.config.parts import Norm

EPS = 1e-6
"""Of a norm, where nothing else is said: timm's and most papers', not PyTorch's 1e-5."""


class TokenBatchNorm(nn.Module):
    """BatchNorm of tokens `(B, N, C)`: the statistics of a channel over images and tokens.

    In front of a linear layer or a 1x1 convolution, as in a block, it can be folded into that.
    A class token counts as a token. Passes through one block share the running statistics.
    """

    def __init__(self, dim: int, eps: float = EPS) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(dim, eps)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.norm(x.transpose(1, 2)).transpose(1, 2)
        return out


def build_norm(dim: int, kind: Norm = "layernorm", eps: float = EPS) -> nn.Module:
    """The norm of tokens `(B, N, dim)` that `kind` names.

    Args:
        dim: channels C.
        kind: `layernorm_nobias` is MetaFormer's, with a weight and no bias.
        eps: added to the variance.
    """
    if kind == "batchnorm":
        return TokenBatchNorm(dim, eps)
    return nn.LayerNorm(dim, eps=eps, bias=kind == "layernorm")
