"""timm's name for a baseline: what config.json of a trained reference network says.

As `entrypoints`, this module runs when both vitnas and timm are imported, and imports timm and
torch only inside its functions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from vitnas.config.baseline import Baseline
from vitnas.config.files import validate

if TYPE_CHECKING:
    from torch import nn

__all__ = ["BASELINE", "layers_of", "register"]

BASELINE = "vitnas_baseline"
"""Its options are those of baseline.yaml: `family`, `width`, `image_hw` and so on."""

default_cfgs: dict[str, Any] = {}
"""`register_model` looks for it in this module."""


def register() -> None:
    """Register `BASELINE` with timm. A second call does nothing."""
    from timm.models import generate_default_cfgs, register_model

    if BASELINE not in default_cfgs:
        default_cfgs.update(generate_default_cfgs({BASELINE: {"fixed_input_size": True}}))
        register_model(vitnas_baseline)


def layers_of(baseline: Baseline) -> dict[str, str]:
    """The layers that timm changes for other channels or classes, by its words for them."""
    import torch
    from torch import nn

    from vitnas.baselines.families import build_baseline

    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        named = list(build_baseline(baseline).named_modules())
    first = next(name for name, module in named if isinstance(module, nn.Conv2d))
    last = [name for name, module in named if isinstance(module, nn.Linear)][-1]
    return {"first_conv": first, "classifier": last}


def vitnas_baseline(
    pretrained: bool = False,
    pretrained_cfg: Any = None,
    pretrained_cfg_overlay: dict[str, Any] | None = None,
    pretrained_model_args: dict[str, Any] | None = None,
    cache_dir: Any = None,
    **fields: Any,
) -> nn.Module:
    """A member of a family of reference networks.

    Args:
        pretrained, ..., cache_dir: timm's own.
        **fields: as in baseline.yaml.

    Raises:
        ConfigError: there is no such member.
    """
    from timm.models import build_model_with_cfg

    baseline = validate(Baseline, fields)
    built: nn.Module = build_model_with_cfg(
        partial(_build, baseline),
        BASELINE,
        pretrained,
        pretrained_cfg=pretrained_cfg,
        pretrained_cfg_overlay=pretrained_cfg_overlay,
        cache_dir=cache_dir,
        **({"pretrained_model_args": pretrained_model_args} if pretrained_model_args else {}),
        img_size=baseline.image_hw,
        in_chans=baseline.in_chans,
        num_classes=baseline.num_classes,
    )
    return built


def _build(baseline: Baseline, img_size: Any, **sizes: Any) -> nn.Module:
    """The member; timm gives the size of its weights' images as `img_size`."""
    from vitnas.baselines.families import build_baseline

    return build_baseline(baseline.changed(image_hw=img_size, **sizes))
