"""Re-attention in an attention of timm's."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vitnas.config.parts import ReattentionConfig
from vitnas.nn.layers.reattention import Reattention


class ReattentionDropout(nn.Dropout):
    """Dropout on the map, then re-attention: what an attention of timm's sends its map through.

    Source: DeepViT, Eq. 3. Stands in the place of `attn_drop`. The attention must not be fused,
    because a fused one has no map.

    Args:
        dropout: what stood there; its rate stays.
        num_heads: heads h.
        config: norm, bias and scale.

    Shape: map `(B, h, N, N)` -> the same.
    """

    def __init__(self, dropout: nn.Dropout, num_heads: int, config: ReattentionConfig) -> None:
        super().__init__(dropout.p)
        self.reattention = Reattention(num_heads, config.norm, config.bias, config.scale)

    def forward(self, attention: Tensor) -> Tensor:
        mixed: Tensor = self.reattention(super().forward(attention))
        return mixed


def mix_maps(attention: Any, config: ReattentionConfig) -> ReattentionDropout:
    """What `attention.attn_drop` is to become, on its device, in its type and mode."""
    new = ReattentionDropout(attention.attn_drop, attention.num_heads, config)
    return new.to(attention.qkv.weight).train(attention.training)
