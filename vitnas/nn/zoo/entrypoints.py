"""The papers' models in timm: `timm.create_model("sret_t", num_classes=10, img_size=384)`.

`timm.create_model("vitnas", stages=[...], ...)` is the network of a model file; exports name it in
their config.json, so that timm loads them.

This module runs when both vitnas and timm are imported, in either order. So it imports timm only
inside its functions. If timm already has a model of the same name, ours gets the prefix
`vitnas_`. No model of timm is replaced.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.errors import ConfigError, VitnasError, nearest_name
from vitnas.nn.zoo import grafted, reference
from vitnas.nn.zoo.names import printed, zoo_config, zoo_names

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vitnas.nn.model import HybridTransformer

_ConfigOf = Callable[..., ModelConfig]
"""Fields -> the network that they describe."""

__all__ = ["ANY", "OptionError", "register", "timm_names", "weights_of"]

ANY = "vitnas"
"""timm's name for a network that is no model of the zoo: all fields are options."""

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Mean and deviation of ImageNet, as in DeiT's and MetaFormer's recipes (SReT, BViT, SKA)."""

HALF = (0.5, 0.5, 0.5)
"""Mean and deviation in DeepViT's code: those of timm's original ViT."""

_FEATURE_CLASSES = {"FeatureGetterNet": "getter", "FeatureHookNet": "hook", "FeatureGraphNet": "fx"}
"""timm's feature classes that our networks support. The others need a sequence of modules."""

timm_names: dict[str, str] = {}
"""Name in the zoo -> name in timm, for the registered models."""

default_cfgs: dict[str, Any] = {}
"""Name in timm -> timm's `DefaultCfg`. `register_model` looks for it in this module."""


class OptionError(ConfigError, TypeError):
    """An option of `timm.create_model` that our networks do not have."""


def register() -> None:
    """Register `ANY`, grafts, baselines and every model of the zoo with timm, each once."""
    from timm.models import is_model

    if ANY not in default_cfgs:
        _register(ANY, _any_network, {"fixed_input_size": True})
    for name in zoo_names():
        if name not in timm_names:
            timm_names[name] = f"vitnas_{name}" if is_model(name) else name
            _register(timm_names[name], partial(zoo_config, name), _pretrained_cfg(name))
    grafted.register()
    reference.register()


def _any_network(**fields: Any) -> ModelConfig:
    """The network of a model file.

    Raises:
        ConfigError: a field is missing, or a value is not possible.
    """
    return validate(ModelConfig, fields)


def _register(ours: str, config_of: _ConfigOf, pretrained_cfg: dict[str, Any]) -> None:
    from timm.models import generate_default_cfgs, register_model

    default_cfgs.update(generate_default_cfgs({ours: pretrained_cfg}))
    create = _entrypoint(ours, config_of)
    create.__name__ = create.__qualname__ = ours
    setattr(sys.modules[__name__], ours, create)
    register_model(create)


def _pretrained_cfg(name: str) -> dict[str, Any]:
    """The fields that timm's data pipeline and its loading of weights read."""
    config = zoo_config(name)
    return {
        "num_classes": config.num_classes,
        "input_size": (config.in_chans, *config.image_hw),
        "pool_size": config.grids[-1] if len(config.stages) > 1 else None,
        "fixed_input_size": True,
        "interpolation": "bicubic",
        **weights_of(config),
        **_evaluation(name, config),
    }


def weights_of(config: ModelConfig) -> dict[str, str]:
    """The layers that timm changes for other channels or classes, by its words for them."""
    last = ".3" if config.head.kind == "mlp" else ""
    first = {} if config.stem.kind == "shifted" else {"first_conv": "stem.conv.0"}
    return {**first, "classifier": f"head.classifier{last}"}


def _evaluation(name: str, config: ModelConfig) -> dict[str, Any]:
    """How the papers' code prepares an image for evaluation.

    DeepViT's code (also for its ViTs) does it like timm for the original ViT: it crops 0.9 of the
    picture, above 224 px the whole picture. MetaFormers and networks for images of at most 64 px
    use the whole picture. All others follow DeiT: 224 of 256 pixels (0.875), at any size.
    """
    size = config.image_hw[0]
    if "DeepViT" in printed()[name].source:
        return {"crop_pct": 0.9 if size <= 224 else 1.0, "mean": HALF, "std": HALF}
    whole = config.stem.kind == "metaformer" or size <= 64
    return {"crop_pct": 1.0 if whole else 0.875, "mean": MEAN, "std": STD}


def _entrypoint(ours: str, config_of: _ConfigOf) -> Callable[..., nn.Module]:
    def create(
        pretrained: bool = False,
        pretrained_cfg: Any = None,
        pretrained_cfg_overlay: dict[str, Any] | None = None,
        cache_dir: Any = None,
        pretrained_model_args: dict[str, Any] | None = None,
        features_only: bool = False,
        feature_cls: Any = None,
        feature_cfg: dict[str, Any] | None = None,
        out_indices: Any = None,
        device: Any = None,
        dtype: Any = None,
        **options: Any,
    ) -> nn.Module:
        from timm.models import build_model_with_cfg

        config = _checked(config_of, options)  # first: timm's builder removes some options
        features = {"feature_cls": feature_cls, "out_indices": out_indices}
        model: nn.Module = build_model_with_cfg(
            partial(_build, config_of, device, dtype),
            ours,
            pretrained,
            pretrained_cfg=pretrained_cfg,
            pretrained_cfg_overlay=pretrained_cfg_overlay,
            pretrained_filter_fn=_at_our_size,
            feature_cfg=_feature_cfg(config, {**(feature_cfg or {}), **features}),
            features_only=features_only,
            cache_dir=cache_dir,
            **({"pretrained_model_args": pretrained_model_args} if pretrained_model_args else {}),
            **options,
        )
        return model

    create.__doc__ = (
        f"{ours} of vitnas. Options are the fields of `vitnas.ModelConfig`, and timm's own for "
        "weights, features, device and dtype. `num_classes=0` removes the classifier, "
        "`global_pool=''` the pooling."
    )
    return create


def _checked(config_of: _ConfigOf, options: dict[str, Any]) -> ModelConfig:
    """The network of `options`, except the values that only `reset_classifier` can set.

    Raises:
        OptionError: an option is not a field.
        ConfigError: a value is not possible.
    """
    known = {*ModelConfig.model_fields, *ModelConfig.shorthand_keys}
    for option, value in options.items():
        if option not in known:
            nearest = nearest_name(option, known)
            rule = "unknown option" + ("" if nearest else f"; known are {', '.join(sorted(known))}")
            raise OptionError(rule, address=option, value=value, nearest=nearest)
    return config_of(**_split(options)[0])


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of a configuration, and values that only `reset_classifier` can set."""
    fields, head = dict(options), {}
    if fields.get("num_classes") == 0 and not isinstance(fields["num_classes"], bool):
        head["num_classes"] = fields.pop("num_classes")
    if fields.get("global_pool") == "":
        head["global_pool"] = fields.pop("global_pool")
    size = fields.get("img_size")
    if isinstance(size, (tuple, list)) and len(size) == 2 and size[0] == size[1]:
        fields["img_size"] = size[0]
    return fields, head


def _build(config_of: _ConfigOf, device: Any, dtype: Any, **options: Any) -> HybridTransformer:
    import torch

    from vitnas.nn.model import build_model

    fields, head = _split(options)
    with nullcontext() if device is None else torch.device(device):
        model = build_model(config_of(**fields))
        if head:
            model.reset_classifier(
                head.get("num_classes", model.num_classes), head.get("global_pool")
            )
    return model if dtype is None else model.to(dtype)


def _feature_cfg(config: ModelConfig, asked: dict[str, Any]) -> dict[str, Any]:
    """timm's `feature_cfg` for `features_only=True`.

    The default is the feature of every stage, or of the last three blocks in a network of one
    stage. `getter` gives pictures `(B, C, H, W)`. `hook` and `fx` give tokens `(B, N, C)` like the
    blocks or stages themselves.

    Raises:
        ConfigError: our networks do not support this `feature_cls`.
    """
    stages, depth = len(config.stages), config.stages[0].depth
    indices = tuple(range(stages)) if stages > 1 else min(3, depth)
    feature_cfg = {"out_indices": indices, "feature_cls": "getter"}
    feature_cfg |= {key: value for key, value in asked.items() if value is not None}
    way = feature_cfg["feature_cls"]
    way = _FEATURE_CLASSES.get(getattr(way, "__name__", ""), way)
    if way not in _FEATURE_CLASSES.values():
        ways = ", ".join(_FEATURE_CLASSES.values())
        rule = f"must be one of {ways}: the others need a plain sequence of modules"
        raise ConfigError(rule, address="feature_cls", value=str(way), nearest="getter")
    if way != "getter":
        feature_cfg["output_fmt"] = "NLC"
    return {**feature_cfg, "feature_cls": way}


def _at_our_size(state: dict[str, Tensor], model: HybridTransformer) -> dict[str, Tensor]:
    """Weights of another image size (timm notes which), interpolated for the size of `model`."""
    import torch

    from vitnas.nn.model import build_model

    state = state.get("model", state.get("state_dict", state))  # type: ignore[assignment]
    saved = _saved_config(model)
    if saved.image_hw == model.config.image_hw:
        return state
    try:
        with torch.device("meta"):
            before = build_model(saved)
        before.load_state_dict(state, assign=True)
        before.resize(model.config.img_size)
    except (VitnasError, RuntimeError):
        return state  # timm's own error then names what does not fit
    return dict(before.state_dict())


def _saved_config(model: Any) -> ModelConfig:
    """The network to which the weights belong that timm loads into `model`."""
    source = {**model.pretrained_cfg, **model.pretrained_model_args}
    channels, *size = source["input_size"]
    tree = model.config.to_tree() | {"img_size": source.get("img_size", size)}
    tree |= {"in_chans": channels, "num_classes": source["num_classes"]}
    return validate(ModelConfig, tree)
