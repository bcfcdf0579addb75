"""Small networks of every family, with weights that are no longer the initial ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from timm.models.cait import Cait
from timm.models.deit import VisionTransformerDistilled
from timm.models.eva import Eva
from timm.models.metaformer import (
    Attention,
    LayerNorm2dNoBias,
    LayerNormNoBias,
    MetaFormer,
    SepConv,
)
from timm.models.pvt_v2 import PyramidVisionTransformerV2
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from vitnas.nn.graft.cvt import CvT, SkaCvT, StageSize
from vitnas.nn.graft.lvt import LVT, LvtSize
from vitnas.nn.graft.swin import SkaSwin
from vitnas.nn.graft.t2t import TokensToToken
from vitnas.nn.graft.talking import SkaCait

_PLAIN = {"img_size": 16, "patch_size": 4, "embed_dim": 24, "num_heads": 3, "num_classes": 5}


def vit(**options: Any) -> nn.Module:
    """A class token and 4x4 patches, 4 blocks."""
    return _trained(VisionTransformer, {**_PLAIN, "depth": 4, **options})


def t2t(**options: Any) -> nn.Module:
    """As `vit` behind three soft splits and two Performers, 2 blocks."""
    return _trained(
        VisionTransformer, {**_PLAIN, "depth": 2, "embed_layer": TokensToToken, **options}
    )


def deit(**options: Any) -> nn.Module:
    """As `vit` with a distillation token."""
    return _trained(VisionTransformerDistilled, {**_PLAIN, "depth": 4, **options})


def cait(**options: Any) -> nn.Module:
    """4x4 patches in 3 blocks, then 2 of class attention."""
    return _trained(Cait, {**_PLAIN, "depth": 3, "init_values": 0.5, **options})


def swin(**options: Any) -> nn.Module:
    """8x8 and 4x4 tokens, windows of 4x4, shifted in block 1."""
    fields: dict[str, Any] = {
        "img_size": 16,
        "patch_size": 2,
        "window_size": 4,
        "embed_dim": 16,
        "num_classes": 5,
    }
    fields |= {"depths": (2, 2), "num_heads": (2, 4), "drop_path_rate": 0.0}
    return _trained(SwinTransformer, {**fields, **options})


def cvt(**options: Any) -> nn.Module:
    """8x8 and 4x4 tokens, a class token in the second stage."""
    sizes = (StageSize(16, 1, 2, 3, 2, 1), StageSize(24, 2, 3, 3, 2, 1))
    return _trained(CvT, {"img_size": 16, "num_classes": 5, "sizes": sizes, **options})


def ska_cvt(**options: Any) -> nn.Module:
    """4x4 and 2x2 tokens, a class token in the second stage, GELU by a sigmoid."""
    fields = {"embed_dims": (16, 24), "depths": (1, 2), "num_heads": (2, 3), "num_classes": 5}
    return _trained(SkaCvT, {"img_size": 16, **fields, **options})


def ska_cait(**options: Any) -> nn.Module:
    """4x4 patches in 3 blocks with 3 heads of 10 channels, then 2 of class attention."""
    return _trained(SkaCait, {**_PLAIN, "depth": 3, "head_dim": 10, "init_values": 0.5, **options})


def ska_swin(**options: Any) -> nn.Module:
    """8x8 and 4x4 tokens, windows of 4x4, shifted in block 1 of each stage."""
    fields = {"embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4), "num_classes": 5}
    fields |= {"head_dim": 8, "downscaling_factors": (2, 2), "img_size": 16}
    return _trained(SkaSwin, {**fields, **options})


def lvt(**options: Any) -> nn.Module:
    """8x8 tokens with CSA, then 4x4 and 2x2 tokens with RASA; 2x2 keys and values in both."""
    sizes = (LvtSize(16, 1, 2, 2), LvtSize(16, 2, 2, 2, 2), LvtSize(24, 2, 3, 2))
    fields = {"img_size": 16, "patch_size": 2, "num_classes": 5, "sizes": sizes}
    return _trained(LVT, {**fields, **options})


def eva(**options: Any) -> nn.Module:
    """A class token and 4x4 patches, 3 blocks, biases of query and value alone, no rotary
    positions."""
    return _trained(Eva, {**_PLAIN, "depth": 3, **options})


def pvt(**options: Any) -> nn.Module:
    """4x4 and 2x2 tokens for 16 px; 2x2 values in both stages."""
    fields = {"depths": (2, 2), "embed_dims": (16, 24), "num_heads": (2, 3), "num_classes": 5}
    fields |= {"sr_ratios": (2, 1), "mlp_ratios": (2, 2)}
    return _sized(_trained(PyramidVisionTransformerV2, {**fields, **options}))


def caformer(**options: Any) -> nn.Module:
    """4x4 tokens with convolutions, then 2x2 tokens with attention of one head of 32 channels."""
    fields = {"depths": (1, 2), "dims": (16, 64), "num_classes": 5}
    fields |= {
        "token_mixers": [SepConv, Attention],
        "norm_layers": [LayerNorm2dNoBias, LayerNormNoBias],
    }
    return _sized(_trained(MetaFormer, {**fields, **options}))


def _sized(model: Any) -> nn.Module:
    """As `build_network` builds a network that takes any size."""
    model.image_hw = (16, 16)
    network: nn.Module = model
    return network


ALL: dict[str, Callable[..., nn.Module]] = {
    build.__name__: build
    for build in (
        vit,
        t2t,
        deit,
        cait,
        swin,
        cvt,
        eva,
        pvt,
        caformer,
        lvt,
        ska_cvt,
        ska_cait,
        ska_swin,
    )
}


def _trained(kind: Callable[..., nn.Module], fields: dict[str, Any]) -> nn.Module:
    """In eval, each parameter and running mean moved by noise, so that nothing is trivial."""
    torch.manual_seed(0)
    model = kind(**fields)
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.is_floating_point() and tensor.ndim and tensor.dtype == torch.float32:
                tensor.add_(0.1 * torch.randn_like(tensor).abs())
    for module in model.modules():
        if hasattr(module, "init_non_persistent_buffers"):
            module.init_non_persistent_buffers()  # Swin's masks are not for noise
    return model.eval()


def images(batch: int = 2) -> Tensor:
    return torch.randn(batch, 3, 16, 16, generator=torch.Generator().manual_seed(1))
