"""Layer normalisation over channels, with or without a bias."""

from __future__ import annotations

from typing import Literal

from torch import nn

EPS = 1e-6
"""Of every layer norm in the house: timm's and the papers' value, not PyTorch's 1e-5."""


def build_norm(dim: int, kind: Literal["layernorm", "layernorm_nobias"] = "layernorm") -> nn.Module:
    """LayerNorm over the last axis of `(B, N, dim)`.

    Args:
        dim: channels C.
        kind: `layernorm_nobias` is MetaFormer's, with a weight and no bias.
    """
    return nn.LayerNorm(dim, eps=EPS, bias=kind == "layernorm")
