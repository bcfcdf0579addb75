"""timm's features: the levels of a network, and the shape of their output."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from vitnas.config.model import ModelConfig
from vitnas.nn.layers.tokens import Grid, to_picture


def feature_levels(config: ModelConfig) -> list[dict[str, Any]]:
    """timm's `feature_info`: module, channels and stride of every level.

    A network of several stages has one level per stage, like timm's Swin and MetaFormer. A network
    of one stage has one level per block, like timm's ViT.
    """
    if len(config.stages) > 1:
        return [
            {
                "module": f"stages.{index}",
                "num_chs": stage.embed_dim,
                "reduction": config.stem.stride << index,
            }
            for index, stage in enumerate(config.stages)
        ]
    stage = config.stages[0]
    return [
        {
            "module": f"stages.0.blocks.{index}",
            "num_chs": stage.embed_dim,
            "reduction": config.stem.stride,
        }
        for index in range(stage.depth)
    ]


def as_feature(tokens: Tensor, grid: Grid, output_fmt: str) -> Tensor:
    """Patch tokens `(B, H*W, C)` as `(B, C, H, W)` for `NCHW`, or unchanged for `NLC`."""
    return to_picture(tokens, grid).contiguous() if output_fmt == "NCHW" else tokens
