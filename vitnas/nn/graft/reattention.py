"""Re-attention in an attention of timm."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from vitnas.config.parts import ReattentionConfig
from vitnas.nn.layers.reattention import Reattention


class ReattentionDropout(nn.Dropout):
    """Dropout on the map, then re-attention. It takes the place of `attn_drop` in timm's attention.

    Source: DeepViT, Eq. 3. The attention must not be fused, because a fused attention has no map.

    Args:
        dropout: the module before; its rate is kept.
        num_heads: heads h.
        config: norm and its epsilon, bias and scale.

    Shape: map `(B, h, N, N)` -> the same.
    """

    def __init__(self, dropout: nn.Dropout, num_heads: int, config: ReattentionConfig) -> None:
        super().__init__(dropout.p)
        self.reattention = Reattention(
            num_heads, config.norm, config.bias, config.scale, config.norm_eps
        )

    def forward(self, attention: Tensor) -> Tensor:
        mixed: Tensor = self.reattention(super().forward(attention))
        return mixed


def mix_maps(attention: Any, config: ReattentionConfig) -> ReattentionDropout:
    """The new `attention.attn_drop`, with the attention's device, data type and mode."""
    new = ReattentionDropout(attention.attn_drop, attention.num_heads, config)
    return new.to(attention.proj.weight).train(attention.training)
