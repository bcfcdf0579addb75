"""Small networks of every kind that has a map, and of those that have none."""

from __future__ import annotations

from typing import Any

import timm
import torch
from torch import Tensor, nn

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.diagnose.layers import Layer
from vitnas.nn import HybridTransformer, build_model

MHSA: dict[str, Any] = {"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 2, "mlp_ratio": 1.0}
SKA = MHSA | {"token_mixer": "ska"}
CSKA = MHSA | {"token_mixer": "cska"}
CONV: dict[str, Any] = {
    "token_mixer": "dwconv",
    "embed_dim": 8,
    "kernel_size": 3,
    "mlp_ratio": 1.0,
}
BASE = {"img_size": 8, "in_chans": 1, "num_classes": 10, "stem": {"stride": 2}}


def config(*stages: dict[str, Any], **fields: Any) -> ModelConfig:
    return validate(ModelConfig, {**BASE, **fields, "stages": list(stages)})


def network(*stages: dict[str, Any], **fields: Any) -> HybridTransformer:
    """With weights large enough for attention to be far from uniform."""
    torch.manual_seed(0)
    model = build_model(config(*stages, **fields)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(std=0.4)
    return model


def pictures(number: int = 3, channels: int = 1, side: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(number, channels, side, side, generator=generator)


def small_swin(side: int, window: int) -> nn.Module:
    """timm's Swin with two stages of two blocks, the second of each shifted."""
    torch.manual_seed(0)
    model: nn.Module = timm.create_model(
        "swin_tiny_patch4_window7_224",
        img_size=side,
        window_size=window,
        embed_dim=16,
        depths=(2, 2),
        num_heads=(2, 4),
    )
    return model


def layer(index: int = 0, **facts: Any) -> Layer:
    """A layer of a network of one stage, with a map of two heads over 2 x 3 tokens."""
    known: dict[str, Any] = {
        "name": f"block {index + 1}",
        "label": str(index + 1),
        "stage": 1,
        "mixer": "mhsa",
        "tokens": 6,
        "dim": 4,
        "prefix": 0,
        "grid": (2, 3),
        "heads": 2,
        "absent": "",
        "last": False,
    }
    return Layer(index=index, **{**known, **facts})


def hooks_of(model: nn.Module) -> int:
    """Hooks that are left on a network."""
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def random_maps(batch: int = 3, heads: int = 2, tokens: int = 6, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (3 * torch.randn(batch, heads, tokens, tokens, generator=generator)).softmax(-1)
