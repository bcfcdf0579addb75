"""Networks for the tests of the whole model, their images, and timm's with the same sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.nn import HybridTransformer, build_model

VARIED = [5, 4, 29, 37, 3, 7, 8, 28, 39, 42, 45, 16, 25]
"""Seeds that between them have every token mixer, groups, broad attention and a class token."""


def images_for(taker: ModelConfig | HybridTransformer, batch: int = 2, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, taker.in_chans, *taker.image_hw, generator=generator)


def built(config: ModelConfig) -> HybridTransformer:
    """With the same weights each time, in training mode."""
    torch.manual_seed(0)
    return build_model(config)


def ready(config: ModelConfig) -> HybridTransformer:
    """As `built`, in evaluation mode."""
    return built(config).eval()


def vit(**fields: Any) -> ModelConfig:
    stage = {"token_mixer": "mhsa", "depth": 2, "embed_dim": 24, "num_heads": 3}
    tree = {"img_size": 32, "stem": {"stride": 8}, "num_classes": 7, "stages": [stage]}
    return validate(ModelConfig, {**tree, "class_token": True, **fields})


def randomised(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def caformer() -> ModelConfig:
    stages = [
        {"token_mixer": mixer, "embed_dim": dim, "residual": residual}
        for mixer, dim, residual in zip(
            ["dwconv", "dwconv", "mhsa", "mhsa"],
            (32, 48, 64, 96),
            ("plain", "plain", "scale", "scale"),
            strict=True,
        )
    ]
    tree = {
        "img_size": 64,
        "num_classes": 7,
        "stem": {"kind": "metaformer", "stride": 4},
        "downsample": "metaformer",
        "norm": "layernorm_nobias",
        "mlp_act": "star_relu",
        "mlp_bias": False,
        "qkv_bias": False,
        "proj_bias": False,
        "pos_embed": "none",
        "head": {"kind": "mlp"},
        "stages": stages,
    }
    return validate(ModelConfig, tree)


def hierarchy(**fields: Any) -> ModelConfig:
    stages = [
        {"token_mixer": "mhsa", "depth": 2, "embed_dim": 16, "num_heads": 2, "nll_ratio": 1.0},
        {"token_mixer": "ska", "embed_dim": 24, "num_heads": 3},
        {"token_mixer": "dwconv", "embed_dim": 32, "kernel_size": 3},
    ]
    tree = {"img_size": 32, "num_classes": 7, "stem": {"stride": 4}, "stages": stages}
    return validate(ModelConfig, {**tree, "groups": "[4,2][1][1]", **fields})


def deep(**fields: Any) -> ModelConfig:
    """Re-attention, broad attention or shared maps, in one stage with a class token."""
    stage = {"token_mixer": "mhsa", "depth": 4, "embed_dim": 24, "num_heads": 3}
    tree = {"img_size": 32, "stem": {"stride": 8}, "num_classes": 7, "stages": [stage]}
    return validate(ModelConfig, {**tree, "class_token": True, **fields})


def timm_caformer() -> nn.Module:
    """timm's network of the sizes of `caformer()`, with random weights."""
    from timm.models.metaformer import (
        Attention,
        LayerNorm2dNoBias,
        LayerNormNoBias,
        MetaFormer,
        SepConv,
    )

    model = MetaFormer(
        num_classes=7,
        depths=[1, 1, 1, 1],
        dims=[32, 48, 64, 96],
        token_mixers=[SepConv, SepConv, Attention, Attention],
        norm_layers=[LayerNorm2dNoBias] * 2 + [LayerNormNoBias] * 2,
    )
    return randomised(model)
