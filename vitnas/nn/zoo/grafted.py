"""timm's name for a grafted network: what config.json of an exported graft says.

As `entrypoints`, this module runs when both vitnas and timm are imported, and imports timm and
torch only inside its functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from vitnas.config.files import validate
from vitnas.config.graft_file import GraftFile
from vitnas.errors import ConfigError, VitnasError

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["GRAFTED", "layers_of", "register"]

GRAFTED = "vitnas_graft"
"""Its options are those of graft.yaml: `model`, `options`, `grafts`."""

_LAYERS = ("first_conv", "classifier")
_MOST_STAGES = 5  # a network of timm with more levels has one for each block

default_cfgs: dict[str, Any] = {}
"""`register_model` looks for it in this module."""


def register() -> None:
    """Register `GRAFTED` with timm. A second call does nothing."""
    from timm.models import generate_default_cfgs, register_model

    if GRAFTED not in default_cfgs:
        default_cfgs.update(generate_default_cfgs({GRAFTED: {"fixed_input_size": True}}))
        register_model(vitnas_graft)


def layers_of(file: GraftFile) -> dict[str, Any]:
    """The layers that timm changes for other channels or classes, by its words for them."""
    import timm

    cfg = timm.get_pretrained_cfg(file.model) if timm.is_model(_base(file)) else None
    found = {name: getattr(cfg, name, None) for name in _LAYERS}
    return {name: value for name, value in found.items() if value is not None}


def _base(file: GraftFile) -> str:
    from timm.models import split_model_name_tag

    name: str = split_model_name_tag(file.model)[0]
    return name


def vitnas_graft(
    pretrained: bool = False,
    pretrained_cfg: Any = None,
    pretrained_cfg_overlay: dict[str, Any] | None = None,
    pretrained_model_args: dict[str, Any] | None = None,
    cache_dir: Any = None,
    features_only: bool = False,
    out_indices: Any = None,
    model: str = "",
    options: Mapping[str, Any] | None = None,
    grafts: Any = (),
    **changes: Any,
) -> nn.Module:
    """A network of timm with grafts.

    Args:
        pretrained, ..., cache_dir: timm's own.
        features_only: whether it gives its levels (B, C, H, W) in place of scores.
        out_indices: which of them; None: all of a network of several stages, else the last three.
        model, options, grafts: as in graft.yaml.
        **changes: further options, instead of those of `options`.

    Raises:
        ConfigError: it cannot be built.
    """
    from timm.models import build_model_with_cfg

    given = {**(options or {}), **changes}
    file = validate(GraftFile, {"model": model, "options": given, "grafts": list(grafts)})
    built: nn.Module = build_model_with_cfg(
        partial(_build, file),
        GRAFTED,
        pretrained,
        pretrained_cfg=pretrained_cfg,
        pretrained_cfg_overlay=pretrained_cfg_overlay,
        pretrained_filter_fn=partial(_at_our_size, file),
        cache_dir=cache_dir,
        **({"pretrained_model_args": pretrained_model_args} if pretrained_model_args else {}),
        **file.options.given(),
    )
    return _features(file, built, out_indices) if features_only else built


def _features(file: GraftFile, built: Any, indices: Any) -> nn.Module:
    """What timm makes of a network whose `features_only` is true; none of its layers is in another
    class. With broad attention all blocks stay: the last one uses what the others have collected.

    Raises:
        ConfigError: the network gives no levels.
    """
    from timm.models._features import FeatureGetterNet

    info = getattr(built, "feature_info", None)
    if not hasattr(built, "forward_intermediates") or not info:
        rule = f"{type(built).__name__} gives no levels"
        raise ConfigError(rule, address="features_only", value=True)
    if indices is None:
        indices = len(info) if len(info) <= _MOST_STAGES else 3
    prune = not any(graft.broad.gamma for graft in file.grafts)
    network: nn.Module = FeatureGetterNet(built, indices, prune=prune)
    network.pretrained_cfg = network.default_cfg = built.pretrained_cfg
    return network


def _build(file: GraftFile, **options: Any) -> nn.Module:
    from vitnas.nn.graft.whole import build_graft

    return build_graft(file.changed(**options))


def _at_our_size(file: GraftFile, state: dict[str, Tensor], model: Any) -> dict[str, Tensor]:
    """Weights of another image size (timm notes which), interpolated for the size of `model`."""
    import torch

    from vitnas.nn.graft.whole import build_graft, resized_state

    channels, height, width = model.pretrained_cfg["input_size"]
    sizes = {"img_size": (height, width), "in_chans": channels}
    if (height, width) == model.image_hw:
        return state
    try:
        with torch.device("meta"):
            before = build_graft(
                file.changed(**sizes, num_classes=model.pretrained_cfg["num_classes"])
            )
        before.load_state_dict(state, assign=True)
        return resized_state(before, model)
    except (VitnasError, RuntimeError):
        return state  # timm's own error then names what does not fit
