"""The papers' models among timm's: `timm.create_model("sret_t", num_classes=10, img_size=384)`.

Imported and run by `import vitnas` as soon as timm itself is imported, in either order, and so has
no import of timm at its top. A name that timm already has for a network of its own gets the prefix
`vitnas_`; nothing of timm's is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError
from vitnas.nn.zoo.names import zoo_config, zoo_names

if TYPE_CHECKING:
    from torch import nn

__all__ = ["register", "timm_names"]

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, as in all five papers' recipes (DeiT's)."""

timm_names: dict[str, str] = {}
"""Name in the zoo -> name in timm, once registered."""

default_cfgs: dict[str, Any] = {}
"""Name in timm -> what timm knows of it; `register_model` looks for it here."""


def register() -> None:
    """Register every model of the zoo with timm; a second call does nothing."""
    from timm.models import is_model

    for name in zoo_names():
        if name not in timm_names:
            timm_names[name] = f"vitnas_{name}" if is_model(name) else name
            _register(name, timm_names[name])


def _register(name: str, ours: str) -> None:
    from timm.models import generate_default_cfgs, register_model

    default_cfgs.update(generate_default_cfgs({ours: _pretrained_cfg(zoo_config(name))}))
    create = _entrypoint(name, ours)
    create.__name__ = create.__qualname__ = ours
    setattr(sys.modules[__name__], ours, create)
    register_model(create)


def _pretrained_cfg(config: ModelConfig) -> dict[str, Any]:
    """What timm's data pipeline and its loading of weights want to know."""
    return {
        "num_classes": config.num_classes,
        "input_size": (config.in_chans, *config.image_hw),
        "fixed_input_size": True,
        "mean": MEAN,
        "std": STD,
        "crop_pct": 0.875 if config.image_hw[0] <= 224 else 1.0,
        "interpolation": "bicubic",
        "first_conv": "stem.conv.0",
        "classifier": "head.classifier" + (".3" if config.head.kind == "mlp" else ""),
    }


def _entrypoint(name: str, ours: str) -> Callable[..., nn.Module]:
    def create(
        pretrained: bool = False,
        pretrained_cfg: Any = None,
        pretrained_cfg_overlay: dict[str, Any] | None = None,
        cache_dir: Any = None,
        pretrained_model_args: dict[str, Any] | None = None,
        drop_rate: float = 0.0,
        **options: Any,
    ) -> nn.Module:
        from timm.models import build_model_with_cfg

        if drop_rate:
            rule = "the papers' models have no dropout before the classifier"
            raise ConfigError(rule, address="drop_rate", value=drop_rate, nearest=0.0)
        zoo_config(name, **options)  # before timm's builder takes options out of them
        model: nn.Module = build_model_with_cfg(
            lambda **fields: _build(name, fields),
            ours,
            pretrained,
            pretrained_cfg=pretrained_cfg,
            pretrained_cfg_overlay=pretrained_cfg_overlay,
            cache_dir=cache_dir,
            **({"pretrained_model_args": pretrained_model_args} if pretrained_model_args else {}),
            **options,
        )
        return model

    create.__doc__ = f"{name} of vitnas; options are the fields of `vitnas.ModelConfig`."
    return create


def _build(name: str, fields: dict[str, Any]) -> nn.Module:
    from vitnas.nn.model import build_model

    size = fields.get("img_size")
    if isinstance(size, (tuple, list)) and len(set(size)) == 1:
        fields["img_size"] = size[0]
    return build_model(zoo_config(name, **fields))
