"""Networks that can be grafted, by name: timm's, SKA's Table 1 at 32 px, T2T-ViT, LVT."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torch import nn

from vitnas.config.files import validate
from vitnas.config.graft_file import NetworkOptions
from vitnas.environment import only_errors_of
from vitnas.errors import ConfigError, DataError, nearest_name, printable
from vitnas.nn.graft.cvt import CvT, SkaCvT
from vitnas.nn.graft.lvt import LVT
from vitnas.nn.graft.shifted import ShiftedPatches
from vitnas.nn.graft.swin import SkaSwin
from vitnas.nn.graft.t2t import TokensToToken, sinusoids
from vitnas.nn.graft.talking import SkaCait
from vitnas.nn.layers.init import init_linear

_WIDE = {
    "img_size": 32,
    "patch_size": 4,
    "embed_dim": 512,
    "depth": 6,
    "num_heads": 8,
    "mlp_ratio": 1.0,
    "qkv_bias": False,
    "num_classes": 10,
}
"""ViT-Small and CaiT-Small of SKA's Table 9: 8 heads of 64 channels, an MLP of 512 channels."""


def vit_small_32(**options: Any) -> nn.Module:
    """ViT-S of Table 1: class token, 65 tokens of 512 channels, 6 blocks."""
    return _from_timm("vit_small_patch16_224", {**_WIDE, **options})


def cait_small_32(**options: Any) -> nn.Module:
    """CaiT-S of Table 1: 6 blocks on 64 tokens, then 2 blocks of class attention."""
    fields = {**_WIDE, "depth_token_only": 2, "mlp_ratio_token_only": 1.0}
    return _from_timm("cait_s24_224", {**fields, **options})


def swin_tiny_32(**options: Any) -> nn.Module:
    """Swin-T of Table 1: patches of 2 px, windows of 4x4, and no merging before the last stage.

    Its stages of 2, 2, 6 and 2 blocks have 16x16, 8x8, 4x4 and 4x4 tokens. Before the last stage a
    linear layer maps 384 channels to 768. Table 9 says patches of 4 px and three stages of 2
    blocks. Such a network has neither the 26.6 M parameters nor the 1.05 G of Table 1. This
    network has both.
    """
    fields = {"img_size": 32, "patch_size": 2, "window_size": 4, "qkv_bias": False}
    # always_partition keeps timm from building a stage with smaller windows; it is undone below
    fields |= {"num_classes": 10, "always_partition": True}
    model: Any = _from_timm("swin_tiny_patch4_window7_224", {**fields, **options})
    height, width = model.patch_embed.grid_size
    for layer, scale in zip(model.layers, (1, 1, 2, 2), strict=True):
        layer.set_input_size((height // scale, width // scale), (4, 4), always_partition=False)
    last = model.layers[3]
    last.downsample = nn.Linear(last.dim, 2 * last.dim)
    init_linear(last.downsample)
    swin: nn.Module = model
    return swin


def cvt_13_32(**options: Any) -> nn.Module:
    """CvT-13 of Table 1, without a class token: with one it has more FLOPs than printed."""
    return CvT(**{"img_size": 32, "num_classes": 10, "class_token": False, **options})


def ska_small_vit(**options: Any) -> nn.Module:
    """The ViT of SKA's code for small images, whose patches are shifted; its attention is timm's.

    A model file has it with attention or `ska`. CSTU is a graft: `mixer: cska`, `class_row: last`,
    `mask_diagonal: true`, `qk_scale: false`.
    """
    fixed = {"embed_layer": ShiftedPatches, "norm_layer": nn.LayerNorm}
    return _from_timm("vit_small_patch16_224", {**_WIDE, **options, **fixed})


def ska_small_cait(**options: Any) -> nn.Module:
    """CaiT as SKA's code for small images has it; `ska` and `cska` keep its talking heads."""
    fields = {**_WIDE, "depth_token_only": 2, "mlp_ratio_token_only": 1.0, "init_values": 0.1}
    return SkaCait(**{**fields, **options})


def ska_small_swin(**options: Any) -> nn.Module:
    """Swin-T as SKA's code for small images has it; each window gets a static key of its own."""
    return SkaSwin(**options)


def ska_small_cvt(**options: Any) -> nn.Module:
    """CvT-13 as SKA's code for small images has it; `ska` and `cska` keep its convolutions."""
    return SkaCvT(**options)


def t2t_vit_7(**options: Any) -> nn.Module:
    """T2T-ViT-7, a host of BViT's Table V: 7 blocks of 256 channels."""
    return _t2t({"embed_dim": 256, "depth": 7, "num_heads": 4, "mlp_ratio": 2.0, **options})


def t2t_vit_14(**options: Any) -> nn.Module:
    """T2T-ViT-14 of BViT's Table III: 14 blocks of 384 channels."""
    return _t2t({"embed_dim": 384, "depth": 14, "num_heads": 6, "mlp_ratio": 3.0, **options})


def lvt(**options: Any) -> nn.Module:
    """LVT, a host of BViT's Table V."""
    return LVT(**options)


def _t2t(fields: dict[str, Any]) -> nn.Module:
    """timm's ViT behind other tokens; its positions are fixed, and it has PyTorch's LayerNorm."""
    import timm

    fixed = {"embed_layer": TokensToToken, "norm_layer": nn.LayerNorm}
    model: Any = timm.create_model("vit_small_patch16_224", qkv_bias=False, **fields, **fixed)
    if model.pos_embed is not None:
        model.pos_embed.requires_grad_(False).copy_(sinusoids(*model.pos_embed.shape[1:]))
    vit: nn.Module = model
    return vit


_SIZED = {"deepseek_vit", "eva", "gemma4_vit", "naflexvit", "qwen3_vit"}
"""Modules of timm whose networks have the option `img_size` and may take images of any size."""

BUILT_HERE: dict[str, Callable[..., nn.Module]] = {
    build.__name__: build
    for build in (
        *(vit_small_32, cait_small_32, swin_tiny_32, cvt_13_32),
        *(ska_small_vit, ska_small_cait, ska_small_swin, ska_small_cvt),
        *(t2t_vit_7, t2t_vit_14, lvt),
    )
}
"""By name: the baselines of SKA's Table 1, those of its code, and BViT's Table V without timm's."""


def build_network(
    name: str, pretrained: bool = False, *, weights: str | None = None, **options: Any
) -> nn.Module:
    """A network that can be grafted, with fresh or with timm's weights.

    Args:
        name: a name of `BUILT_HERE` or of timm.
        pretrained: whether it gets timm's weights. timm fits them to other classes (a new
            classifier), channels and image sizes.
        weights: a file with them; None = timm downloads them.
        **options: fields of `vitnas.config.graft_file.NetworkOptions`, as `timm.create_model` has
            them.

    Raises:
        ConfigError: no network has this name, or the network does not accept an option.
        DataError: timm cannot get the weights.
    """
    fields = validate(NetworkOptions, options).given()
    if name in BUILT_HERE:
        if pretrained:
            rule = f"{name} has no trained weights: it is not timm's"
            raise ConfigError(rule, address="pretrained", value=True, nearest=False)
        return _built(name, BUILT_HERE[name], fields)
    size = fields.get("img_size")
    if is_of_any_size(name):
        fields.pop("img_size", None)
    model: Any = _from_timm(name, fields, pretrained, weights)
    if size is not None:
        model.image_hw = (size, size) if isinstance(size, int) else size
    built: nn.Module = model
    return built


def is_of_any_size(name: str) -> bool:
    """Whether a network of timm has no option for its image size, and takes any.

    A static key in it is then for one size.
    """
    from timm.models import (
        get_pretrained_cfg,
        is_model,
        is_model_in_modules,
        split_model_name_tag,
    )

    plain, _ = split_model_name_tag(name)
    if not is_model(plain) or is_model_in_modules(plain, _SIZED):
        return False
    stated = get_pretrained_cfg(plain)
    return stated is not None and not stated.fixed_input_size


def image_size(model: Any) -> tuple[int, int]:
    """(H, W) of the images for which a network was built.

    Of one that takes any size, the size that `build_network` was asked for, or else timm's.

    Raises:
        ConfigError: it does not say.
    """
    size = getattr(getattr(model, "patch_embed", model), "img_size", None)
    size = size or getattr(model, "image_hw", None)
    if size is None and getattr(model, "pretrained_cfg", None):
        size = model.pretrained_cfg["input_size"][1:]
    if size is None:
        rule = "does not say for which images it is; set its `image_hw`, (H, W) in pixels"
        raise ConfigError(rule, address="model", value=type(model).__name__)
    height, width = size
    return height, width


def classifier_names(model: nn.Module) -> tuple[str, ...]:
    """The names of the parameters that depend on the classes; with distillation, of both heads."""
    found: Any = model.get_classifier()  # type: ignore[operator]
    parts = found if isinstance(found, tuple) else (found,)
    ours = {id(tensor) for part in parts for tensor in part.parameters()}
    return tuple(name for name, tensor in model.named_parameters() if id(tensor) in ours)


def _from_timm(
    name: str, fields: dict[str, Any], pretrained: bool = False, weights: str | None = None
) -> nn.Module:
    import timm
    from timm.models import split_model_name_tag

    if not timm.is_model(split_model_name_tag(name)[0]):
        known = [*BUILT_HERE, *timm.list_models(pretrained=False)]
        rule = "timm has no such model" if name else "is required: a network's name"
        raise ConfigError(rule, address="model", value=name, nearest=nearest_name(name, known))
    if not pretrained:
        return _built(name, timm.create_model, {"model_name": name, **fields})
    return timm_pretrained(name, weights, **fields)


def timm_pretrained(name: str, weights: str | None = None, **fields: Any) -> nn.Module:
    """A network of timm with trained weights, which timm itself loads.

    Args:
        name: timm's name, with or without the tag of its weights.
        weights: a file with them; None = timm's own, from its hub.
        **fields: options of the network.

    Raises:
        DataError: they cannot be had, or are another network's.
    """
    import timm

    source = {} if weights is None else {"pretrained_cfg_overlay": {"file": weights}}
    try:
        with warnings.catch_warnings(), only_errors_of("huggingface_hub"):  # its retries
            warnings.simplefilter("ignore")  # about pickle protocols
            model: nn.Module = timm.create_model(name, pretrained=True, **source, **fields)
    except Exception as error:  # whatever the hub's client, the network or the file may raise
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if why.isdigit():  # torch names the first byte that it does not know
            why = "it is damaged, or no file of weights"
        place = "its weights" if weights is None else weights
        raise DataError(f"{name}: timm cannot get {place}: {printable(why)[:200]}") from None
    return model


def _built(name: str, build: Callable[..., nn.Module], fields: dict[str, Any]) -> nn.Module:
    """`build(**fields)`; an error of timm becomes a `ConfigError` of one line."""
    try:
        model = build(**fields)
    except (TypeError, ValueError, LookupError, AssertionError, ArithmeticError, RuntimeError) as e:
        error = f"there is no {e}" if isinstance(e, KeyError) else str(e)
        given = ", ".join(f"{key} {value}" for key, value in fields.items() if key != "model_name")
        rule = f"{name} cannot be built with {given or 'no options'}: {error}"
        raise ConfigError(rule, address="options") from None
    if 0 in getattr(getattr(model, "patch_embed", None), "grid_size", ()):
        rule = f"{name} has no token at this size: its patches are larger than the image"
        raise ConfigError(rule, address="img_size", value=fields.get("img_size"))
    return model
