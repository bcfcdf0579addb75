"""PyTorch's fused attention, and what takes less time on a CPU.

Heads of a few channels are usual in small networks, and the fused form is slow for them. All forms
give the same numbers but for rounding. `benchmarks/attention_forms.py` has the time of each.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor
from torch.fx import Proxy

_ENOUGH_CHANNELS = 16
"""Of a head, zeros included: one vector of float32 in AVX-512."""
_MANY_KEYS = 64
"""From so many on, the fused form is faster than a map that is written out."""


def map_is_faster(key: Tensor) -> bool:
    """Whether a step on a CPU is faster with the map written out than with the fused form.

    So it is with 16 to 63 keys and heads of less than 32 channels, up to 1.6 times. Such a map is
    small: at most 63 numbers for each query.

    Args:
        key: `(B, h, M, d)`, for M keys and heads of d channels.
    """
    if not _is_on_cpu(key):
        return False
    keys, channels = key.shape[-2:]
    return 16 <= keys < _MANY_KEYS and channels < 32


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scale: float,
    dropout_p: float = 0.0,
    pad: bool = False,
) -> Tensor:
    """softmax(scale * query key^T) value, and no map is written out.

    Args:
        query, key, value: `(B, h, N, d)`, `(B, h, M, d)`, `(B, h, M, d)`.
        scale: of the logits.
        dropout_p: of the map, between 0 and 1.
        pad: whether heads of less than 16 channels may get zeros up to 16, on a CPU and with 64
            keys or more. Attention then takes up to 1.5 times less time.

    Returns:
        `(B, h, N, d)`.
    """
    missing = _ENOUGH_CHANNELS - key.shape[-1] if pad and _is_on_cpu(key) else 0
    if missing <= 0 or key.shape[-2] < _MANY_KEYS:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout_p, scale=scale)
    q, k, v = (F.pad(part, (0, missing)) for part in (query, key, value))
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, scale=scale)
    return out[..., : value.shape[-1]]


def _is_on_cpu(x: Tensor | Proxy) -> bool:
    """Whether it is a tensor on the CPU; what torch.fx traces has neither device nor sizes."""
    return not isinstance(x, Proxy) and x.device.type == "cpu"
