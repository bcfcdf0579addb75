"""The networks that can be grafted: the class of their attention and where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from timm.layers import Attention
from timm.models.cait import Cait, ClassAttn, TalkingHeadAttn
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva, EvaAttention
from timm.models.metaformer import Attention as MetaAttention
from timm.models.metaformer import MetaFormer, Pooling, SepConv
from timm.models.pvt_v2 import Attention as ReducedAttention
from timm.models.pvt_v2 import PyramidVisionTransformerV2
from timm.models.swin_transformer import SwinTransformer, WindowAttention
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from vitnas.errors import ConfigError
from vitnas.nn.graft.atrous import AtrousAttention, AtrousGraft
from vitnas.nn.graft.attention import Site, StaticKeyGraft
from vitnas.nn.graft.convolved import ConvolvedGraft
from vitnas.nn.graft.cvt import ConvAttention, CvT, SkaCvT
from vitnas.nn.graft.keyed import KeyedGraft
from vitnas.nn.graft.lvt import LVT, ConvSelfAttention, RasaBlock
from vitnas.nn.graft.networks import image_size
from vitnas.nn.graft.reduced import ReducedGraft
from vitnas.nn.graft.swin import PlacedAttention, SkaSwin
from vitnas.nn.graft.talking import (
    SkaCait,
    TalkingAttention,
    TalkingClassAttention,
    TalkingGraft,
)
from vitnas.nn.graft.windows import WindowGraft
from vitnas.nn.layers.tokens import Grid


@dataclass(frozen=True)
class Family:
    """Networks that are grafted in the same way.

    Attributes:
        attention: the class of attention; no other can be grafted.
        sites: a function of the network that lists its attentions, first block first.
        graft: the class of the module that replaces an attention.
        reattention, broad: whether re-attention and broad attention can be added.
        left: a class of attention that never changes, or None.
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
    return _in_blocks(model, 0)  # the class token joins the tokens after these blocks


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


def _placed_sites(model: Any) -> list[Site]:
    return [
        Site(f"stages.{number}.blocks.{index}.attn", block, number, stage.grid, 0, stage.grid)
        for number, stage in enumerate(model.stages)
        for index, block in enumerate(stage.blocks)
    ]


def _lvt_sites(model: Any) -> list[Site]:
    """Blocks with RASA alone, in the last three stages; they are numbered among themselves."""
    return [
        Site(f"stages.{number}.blocks.{index}.attn", block, number, stage.grid, 0, stage.grid)
        for number, stage in enumerate(model.stages)
        for index, block in enumerate(stage.blocks)
        if isinstance(block, RasaBlock)
    ]


def _after(grid: Grid, conv: Any) -> Grid:
    """The grid behind a convolution; the same without one."""
    if conv is None:
        return grid
    parts = zip(grid, conv.padding, conv.kernel_size, conv.stride, strict=True)
    height, width = (
        (side + 2 * padding - kernel) // stride + 1 for side, padding, kernel, stride in parts
    )
    return height, width


def _pvt_sites(model: Any) -> list[Site]:
    grid, sites = _after(image_size(model), model.patch_embed.proj), list[Site]()
    for number, stage in enumerate(model.stages):
        grid = _after(grid, getattr(stage.downsample, "proj", None))
        sites += [
            Site(f"stages.{number}.blocks.{index}.attn", block, number, grid, 0, grid)
            for index, block in enumerate(stage.blocks)
        ]
    return sites


def _metaformer_sites(model: Any) -> list[Site]:
    """Blocks with attention alone; they are numbered among themselves."""
    grid, field, sites = _after(image_size(model), model.stem.conv), "token_mixer", list[Site]()
    for number, stage in enumerate(model.stages):
        grid = _after(grid, getattr(stage.downsample, "conv", None))
        sites += [
            Site(f"stages.{number}.blocks.{index}.{field}", block, number, grid, 0, grid, field)
            for index, block in enumerate(stage.blocks)
            if not isinstance(block.token_mixer, (Pooling, SepConv))
        ]
    return sites


_VIT = Family(Attention, _vit_sites, reattention=True, broad=True)

FAMILIES: dict[type[nn.Module], Family] = {
    VisionTransformer: _VIT,
    VisionTransformerDistilled: _VIT,
    Cait: Family(TalkingHeadAttn, _cait_sites, left=ClassAttn),
    SwinTransformer: Family(WindowAttention, _swin_sites, graft=WindowGraft, broad=True),
    SkaCait: Family(TalkingAttention, _cait_sites, TalkingGraft, left=TalkingClassAttention),
    SkaSwin: Family(PlacedAttention, _placed_sites, graft=KeyedGraft),
    CvT: Family(ConvAttention, _cvt_sites),
    SkaCvT: Family(ConvAttention, _cvt_sites, graft=ConvolvedGraft),
    LVT: Family(
        AtrousAttention,
        _lvt_sites,
        graft=AtrousGraft,
        reattention=True,
        broad=True,
        left=ConvSelfAttention,
    ),
    Eva: Family(EvaAttention, _vit_sites, reattention=True),
    PyramidVisionTransformerV2: Family(
        ReducedAttention, _pvt_sites, graft=ReducedGraft, reattention=True
    ),
    MetaFormer: Family(MetaAttention, _metaformer_sites, reattention=True, broad=True),
}
"""Class of a network -> its family. A subclass may compute something else and is not accepted."""


def family_of(model: nn.Module) -> Family:
    """The family of a built network.

    Raises:
        ConfigError: there is none for its class.
    """
    if type(model) not in FAMILIES:
        raise ConfigError(
            f"networks of this class cannot be grafted; possible classes are {_names(FAMILIES)}",
            address="model",
            value=type(model).__name__,
        )
    return FAMILIES[type(model)]


def mixers_of(model: nn.Module) -> dict[str, str]:
    """What mixes the tokens in each block: `ska`, `cska`, or the class of timm's attention."""
    return {
        site.name: getattr(site.attention, "kind", type(site.attention).__name__)
        for site in family_of(model).sites(model)
    }


def _names(classes: dict[type[nn.Module], Family]) -> str:
    return ", ".join(kind.__name__ for kind in classes)
