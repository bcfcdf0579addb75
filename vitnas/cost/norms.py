"""What a norm costs."""

from __future__ import annotations

from vitnas.config.parts import Norm

LAYER_NORM, BATCH_NORM = 5, 2
"""FLOPs per element, as fvcore counts them."""
_NORMS: dict[Norm, tuple[int, int]] = {
    "layernorm": (LAYER_NORM, 2),
    "layernorm_nobias": (LAYER_NORM, 1),
    "batchnorm": (BATCH_NORM, 2),
}
"""FLOPs per element and parameters per channel of a norm of tokens."""


def norm_cost(kind: Norm, channels: int, tokens: int) -> tuple[int, int]:
    """FLOPs and parameters of one norm of tokens."""
    flops, params = _NORMS[kind]
    return flops * tokens * channels, params * channels
