"""The networks that can be grafted on: what their attention is and where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from timm.layers import Attention
from timm.models.cait import Cait, ClassAttn, TalkingHeadAttn
from timm.models.deit import VisionTransformerDistilled
from timm.models.swin_transformer import SwinTransformer, WindowAttention
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from vitnas.errors import ConfigError
from vitnas.nn.graft.attention import Site, StaticKeyGraft
from vitnas.nn.graft.cvt import ConvAttention, CvT
from vitnas.nn.graft.windows import WindowGraft


@dataclass(frozen=True)
class Family:
    """Networks that are grafted on alike.

    Attributes:
        attention: the one class of attention that is known.
        sites: where it stands, from the first block to the last.
        graft: what a static key is put there as.
        reattention, broad: whether these can be attached.
        left: a class of attention that is never touched, or None.
    """

    attention: type[nn.Module]
    sites: Callable[[Any], list[Site]]
    graft: type[StaticKeyGraft] = StaticKeyGraft
    reattention: bool = False
    broad: bool = False
    left: type[nn.Module] | None = None


def _in_blocks(model: Any, prefix: int) -> list[Site]:
    grid = model.patch_embed.grid_size
    return [
        Site(f"blocks.{index}.attn", block, 0, grid, prefix, grid)
        for index, block in enumerate(model.blocks)
    ]


def _vit_sites(model: Any) -> list[Site]:
    return _in_blocks(model, model.num_prefix_tokens)


def _cait_sites(model: Any) -> list[Site]:
    return _in_blocks(model, 0)  # its class token comes in after these blocks


def _swin_sites(model: Any) -> list[Site]:
    return [
        Site(
            f"layers.{stage}.blocks.{index}.attn",
            block,
            stage,
            block.window_size,
            0,
            block.input_resolution,
        )
        for stage, layer in enumerate(model.layers)
        for index, block in enumerate(layer.blocks)
    ]


def _cvt_sites(model: Any) -> list[Site]:
    return [
        Site(
            f"stages.{number}.blocks.{index}.attn",
            block,
            number,
            stage.grid,
            stage.prefix,
            stage.grid,
        )
        for number, stage in enumerate(model.stages)
        for index, block in enumerate(stage.blocks)
    ]


_VIT = Family(Attention, _vit_sites, reattention=True, broad=True)

FAMILIES: dict[type[nn.Module], Family] = {
    VisionTransformer: _VIT,
    VisionTransformerDistilled: _VIT,
    Cait: Family(TalkingHeadAttn, _cait_sites, left=ClassAttn),
    SwinTransformer: Family(WindowAttention, _swin_sites, graft=WindowGraft, broad=True),
    CvT: Family(ConvAttention, _cvt_sites),
}
"""By the network's own class: what a subclass does otherwise is not known here."""


def family_of(model: nn.Module) -> Family:
    """The family of a built network.

    Raises:
        ConfigError: none is known for its class.
    """
    if type(model) not in FAMILIES:
        raise ConfigError(
            f"nothing is known of how to graft on it; known are {_names(FAMILIES)}",
            address="model",
            value=type(model).__name__,
        )
    return FAMILIES[type(model)]


def _names(classes: dict[type[nn.Module], Family]) -> str:
    return ", ".join(kind.__name__ for kind in classes)
