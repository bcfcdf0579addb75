"""Networks for the tests of the whole model, their images, and timm's with the same sizes."""

from __future__ import annotations

from typing import Any

import torch
from timm.models._efficientnet_blocks import (
    DepthwiseSeparableConv,
    InvertedResidual,
    SqueezeExcite,
)
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


def settled(module: nn.Module) -> nn.Module:
    """With statistics and gains as a training leaves them: of no norm the ones it starts with."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            for values in (part.running_mean, part.bias.data):
                assert values is not None
                values.normal_()
            for values in (part.running_var, part.weight.data):
                assert values is not None
                values.uniform_(0.5, 2.0)
    return module.eval()


def timms_inverted_residual(
    before: int,
    after: int,
    act: type[nn.Module],
    ratio: float,
    *,
    kernel: int = 3,
    stride: int = 1,
    squeezed: int = 0,
) -> nn.Module:
    """timm's block; its depthwise-separable one where the ratio is 1."""

    def squeeze(channels: int, **_: Any) -> nn.Module:
        return SqueezeExcite(channels, rd_channels=squeezed, act_layer=act)

    block: nn.Module = (DepthwiseSeparableConv if ratio == 1.0 else InvertedResidual)(
        before,
        after,
        dw_kernel_size=kernel,
        stride=stride,
        act_layer=act,
        se_layer=squeeze if squeezed else None,
        **({} if ratio == 1.0 else {"exp_ratio": ratio}),
    )
    return block


def copy_in_order(source: nn.Module, target: nn.Module) -> None:
    """Give `target` the weights and statistics of `source`, whose layers have other names."""
    values = {
        name: value.reshape(mine.shape)
        for (name, mine), value in zip(
            target.state_dict().items(), source.state_dict().values(), strict=True
        )
    }
    target.load_state_dict(values)


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
