"""The papers' models among timm's: `timm.create_model("sret_t", num_classes=10, img_size=384)`.

Imported and run by `import vitnas` as soon as timm itself is imported, in either order, and so has
no import of timm at its top. A name that timm already has for a network of its own gets the prefix
`vitnas_`; nothing of timm's is replaced.
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
from vitnas.nn.zoo.names import printed, zoo_config, zoo_names

if TYPE_CHECKING:
    from torch import Tensor, nn

    from vitnas.nn.model import HybridTransformer

__all__ = ["OptionError", "register", "timm_names"]

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's: DeiT's and MetaFormer's recipes, which SReT, BViT and SKA follow."""

HALF = (0.5, 0.5, 0.5)
"""Mean and deviation in DeepViT's code, which keeps timm's of the original ViT."""

_FEATURE_CLASSES = {"FeatureGetterNet": "getter", "FeatureHookNet": "hook", "FeatureGraphNet": "fx"}
"""timm's ways to features that our networks have; the others rebuild a sequence of modules."""

timm_names: dict[str, str] = {}
"""Name in the zoo -> name in timm, once registered."""

default_cfgs: dict[str, Any] = {}
"""Name in timm -> what timm knows of it; `register_model` looks for it here."""


class OptionError(ConfigError, TypeError):
    """An option of `timm.create_model` that our networks do not have."""


def register() -> None:
    """Register every model of the zoo with timm; a second call does nothing."""
    from timm.models import is_model

    for name in zoo_names():
        if name not in timm_names:
            timm_names[name] = f"vitnas_{name}" if is_model(name) else name
            _register(name, timm_names[name])


def _register(name: str, ours: str) -> None:
    from timm.models import generate_default_cfgs, register_model

    default_cfgs.update(generate_default_cfgs({ours: _pretrained_cfg(name)}))
    create = _entrypoint(name, ours)
    create.__name__ = create.__qualname__ = ours
    setattr(sys.modules[__name__], ours, create)
    register_model(create)


def _pretrained_cfg(name: str) -> dict[str, Any]:
    """What timm's data pipeline and its loading of weights want to know."""
    config = zoo_config(name)
    return {
        "num_classes": config.num_classes,
        "input_size": (config.in_chans, *config.image_hw),
        "pool_size": config.grids[-1] if len(config.stages) > 1 else None,
        "fixed_input_size": True,
        "interpolation": "bicubic",
        "first_conv": "stem.conv.0",
        "classifier": "head.classifier" + (".3" if config.head.kind == "mlp" else ""),
        **_evaluation(name, config),
    }


def _evaluation(name: str, config: ModelConfig) -> dict[str, Any]:
    """How the papers' code prepares an image for evaluation.

    DeepViT's, for its ViTs too, is timm's of the original ViT: 0.9 of the picture, all of it beyond
    224 pixels. The MetaFormers take all of it, and so do networks for CIFAR's small images; DeiT's
    pipeline takes 224 of 256 pixels, at any size.
    """
    size = config.image_hw[0]
    if "DeepViT" in printed()[name].source:
        return {"crop_pct": 0.9 if size <= 224 else 1.0, "mean": HALF, "std": HALF}
    whole = config.stem.kind == "metaformer" or size <= 64
    return {"crop_pct": 1.0 if whole else 0.875, "mean": MEAN, "std": STD}


def _entrypoint(name: str, ours: str) -> Callable[..., nn.Module]:
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

        config = _checked(name, options)  # before timm's builder takes options out of them
        features = {"feature_cls": feature_cls, "out_indices": out_indices}
        model: nn.Module = build_model_with_cfg(
            partial(_build, name, device, dtype),
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
        f"{name} of vitnas. Options are the fields of `vitnas.ModelConfig` and timm's own for "
        "weights, features, device and dtype; `num_classes=0` and `global_pool=''` take off "
        "classifier and pooling."
    )
    return create


def _checked(name: str, options: dict[str, Any]) -> ModelConfig:
    """The network that `options` ask for, without what timm alone can say.

    Raises:
        OptionError: an option that is no field.
        ConfigError: a value that cannot be.
    """
    known = {*ModelConfig.model_fields, *ModelConfig.shorthand_keys}
    for option, value in options.items():
        if option not in known:
            nearest = nearest_name(option, known)
            rule = "unknown option" + ("" if nearest else f"; known are {', '.join(sorted(known))}")
            raise OptionError(rule, address=option, value=value, nearest=nearest)
    return zoo_config(name, **_split(options)[0])


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields of a configuration, and what only `reset_classifier` can do."""
    fields, head = dict(options), {}
    if fields.get("num_classes") == 0 and not isinstance(fields["num_classes"], bool):
        head["num_classes"] = fields.pop("num_classes")
    if fields.get("global_pool") == "":
        head["global_pool"] = fields.pop("global_pool")
    size = fields.get("img_size")
    if isinstance(size, (tuple, list)) and len(size) == 2 and size[0] == size[1]:
        fields["img_size"] = size[0]
    return fields, head


def _build(name: str, device: Any, dtype: Any, **options: Any) -> HybridTransformer:
    import torch

    from vitnas.nn.model import build_model

    fields, head = _split(options)
    with nullcontext() if device is None else torch.device(device):
        model = build_model(zoo_config(name, **fields))
        if head:
            model.reset_classifier(
                head.get("num_classes", model.num_classes), head.get("global_pool")
            )
    return model if dtype is None else model.to(dtype)


def _feature_cfg(config: ModelConfig, asked: dict[str, Any]) -> dict[str, Any]:
    """How `features_only=True` takes features: by default every stage's, or the last three blocks'.

    `getter` gives them as pictures; `hook` and `fx` as the blocks or stages do: tokens `(B, N, C)`.

    Raises:
        ConfigError: a way that our networks do not have.
    """
    stages, depth = len(config.stages), config.stages[0].depth
    indices = tuple(range(stages)) if stages > 1 else min(3, depth)
    feature_cfg = {"out_indices": indices, "feature_cls": "getter"}
    feature_cfg |= {key: value for key, value in asked.items() if value is not None}
    way = feature_cfg["feature_cls"]
    way = _FEATURE_CLASSES.get(getattr(way, "__name__", ""), way)
    if way not in _FEATURE_CLASSES.values():
        ways = ", ".join(_FEATURE_CLASSES.values())
        rule = f"features are taken by {ways}: the network is no sequence of modules"
        raise ConfigError(rule, address="feature_cls", value=str(way), nearest="getter")
    if way != "getter":
        feature_cfg["output_fmt"] = "NLC"
    return {**feature_cfg, "feature_cls": way}


def _at_our_size(state: dict[str, Tensor], model: HybridTransformer) -> dict[str, Tensor]:
    """Weights saved at another image size, which timm has noted, interpolated for `model`'s."""
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
        return state  # timm says what does not fit
    return dict(before.state_dict())


def _saved_config(model: Any) -> ModelConfig:
    """The network whose weights timm is about to load into `model`."""
    source = {**model.pretrained_cfg, **model.pretrained_model_args}
    channels, *size = source["input_size"]
    tree = model.config.to_tree() | {"img_size": source.get("img_size", size)}
    tree |= {"in_chans": channels, "num_classes": source["num_classes"]}
    return validate(ModelConfig, tree)
