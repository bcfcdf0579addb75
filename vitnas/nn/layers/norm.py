"""Layer normalisation over channels, with or without a bias."""

from __future__ import annotations

from typing import Literal

from torch import nn

EPS = 1e-6
"""Of a layer norm, where nothing else is said: timm's and most papers', not PyTorch's 1e-5."""


def build_norm(
    dim: int, kind: Literal["layernorm", "layernorm_nobias"] = "layernorm", eps: float = EPS
) -> nn.Module:
    """LayerNorm over the last axis of `(B, N, dim)`.

    Args:
        dim: channels C.
        kind: `layernorm_nobias` is MetaFormer's, with a weight and no bias.
        eps: added to the variance.
    """
    return nn.LayerNorm(dim, eps=eps, bias=kind == "layernorm")
