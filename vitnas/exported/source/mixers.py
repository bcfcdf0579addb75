"""The token mixer of a block as an object that model.py makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vitnas.config.model import ModelConfig
from vitnas.config.stage import StageConfig
from vitnas.exported.source.layout import Call, Code, call
from vitnas.nn.mixers import Place
from vitnas.nn.mixers.attention import tau_of


class Variant(NamedTuple):
    """A part of a network in one of its forms: `part` is a template, `options` decide its text."""

    part: str
    options: tuple[tuple[str, Any], ...] = ()


class BlockIndex(int):
    """The index of a block in the network, where a mixer needs it."""


def variant(part: str, **options: Any) -> Variant:
    return Variant(part, tuple(options.items()))


def is_square(config: ModelConfig) -> bool:
    """Whether all grids are, so that their side follows from the number of tokens."""
    return all(height == width for height, width in config.grids)


def gridded(config: ModelConfig, grid: tuple[int, int]) -> dict[str, Any]:
    """The argument `grid`, where it does not follow from the number of tokens."""
    return {} if is_square(config) else {"grid": grid}


def has_later_norms(config: ModelConfig) -> bool:
    """Whether passes of a block have batch norms with statistics of their own."""
    return any(
        stage.passes > 1
        and (stage.qkv_kernel or (stage.has_norm and config.norm_of(stage) == "batchnorm"))
        for stage in config.stages
    )


def mixer_call(place: Place) -> Call:
    """The object for the mixer at `place`."""
    (name,) = place.stage_config.kinds
    if place.reattention and place.config.reattention.source == "shared":
        name = "shared"
    return _MIXERS[name](place)


def _mhsa(place: Place) -> Call:
    config, stage = place.config, place.stage_config
    groups = stage.groups if any(number > 1 for number in stage.groups) else ()
    first = {"always": 0, "second": 1, "never": len(groups)}[config.permute]
    permuted = any(number > 1 for number in groups[first:])
    gives = place.block == config.map_source
    sliced = {
        "groups": bool(groups),
        "permuted": permuted,
        "first_pass": permuted and first == 1 and groups[0] > 1,
        "inverts": permuted and config.permute_inverse,
    }
    args = _attention_args(place)
    if permuted:
        args["tokens"] = place.num_tokens
    if groups:
        args["groups"] = groups
    if permuted:
        args["index"] = BlockIndex(place.block)
    options = _attention_options(place, gives_map=gives, **sliced)
    return call(variant("mhsa", **options), args)


def _shared(place: Place) -> Call:
    args = _attention_args(place)
    args.pop("scale", None)
    return call(variant("shared", wide="width" in args, mixes=True, **_convolved(place)), args)


def _ska(place: Place) -> Call:
    args = {**_attention_args(place), "tokens": place.num_keys, **_windowed(place)}
    return call(variant("ska", **_attention_options(place, **_static(place))), args)


def _cska(place: Place) -> Call:
    stage = place.stage_config
    args = {**_attention_args(place), "keys": place.num_keys, "kernel": stage.key_kernel}
    args |= gridded(place.config, place.grid) | _windowed(place)
    options = _attention_options(place, **_static(place))
    return call(variant("cska", **{**options, "fused": False, "tap": False}), args)


def _static(place: Place) -> dict[str, Any]:
    stage = place.stage_config
    return {"q_proj": stage.projects_query, "windows": stage.num_windows > 1}


def _windowed(place: Place) -> dict[str, Any]:
    stage = place.stage_config
    return {"grid": place.grid, "windows": stage.windows} if stage.num_windows > 1 else {}


def _convolved(place: Place) -> dict[str, Any]:
    """Options of an attention whose inputs are convolved."""
    stage = place.stage_config
    return {"conv": stage.qkv_kernel > 0, "strided": stage.key_stride > 1}


def _attention_args(place: Place) -> dict[str, Any]:
    stage, tau = place.stage_config, tau_of(place)
    args: dict[str, Any] = {"dim": stage.embed_dim, "heads": stage.heads}
    if stage.attn_width != stage.embed_dim:
        args["width"] = stage.attn_width
    if not stage.qk_scale or tau not in (1.0, None):
        per_head = stage.attn_width // stage.heads
        args["scale"] = (per_head**-0.5 if stage.qk_scale else 1.0) / (tau or 1.0)
    if stage.qkv_kernel:
        args |= {**gridded(place.config, place.grid), "conv_kernel": stage.qkv_kernel}
        args |= {"stride": stage.key_stride} if stage.key_stride > 1 else {}
        args |= {"passes": stage.passes} if has_later_norms(place.config) else {}
    return args


def _attention_options(place: Place, gives_map: bool = False, **more: Any) -> dict[str, Any]:
    stage, args = place.stage_config, _attention_args(place)
    masks = stage.mask_diagonal and stage.key_stride == 1
    plain = stage.attn_act == "softmax" and not masks
    return {
        "wide": "width" in args,
        "scale": "scale" in args,
        "learnt_tau": tau_of(place) is None,
        "act": stage.attn_act,
        "mask": masks,
        "mixes": place.reattention,
        "gives_map": gives_map,
        "fused": plain and not place.reattention and not gives_map,
        "tap": bool(place.config.broad.gamma) and stage.key_stride == 1,
        **_convolved(place),
        **more,
    }


def _dwconv(place: Place) -> Call:
    stage = place.stage_config
    args = {"dim": stage.embed_dim, "hidden": stage.hidden_channels, "kernel": stage.kernel}
    return call(variant("dwconv"), args | gridded(place.config, place.grid))


def _mbconv(place: Place) -> Call:
    config, stage = place.config, place.stage_config
    args = {
        "dim": stage.embed_dim,
        "residual": config.residual_of(stage),
        "hidden": stage.hidden_channels,
        "kernel": stage.kernel,
        "squeezed": stage.se_channels,
        "act": conv_act(stage),
    }
    return call(variant("mbconv"), args | gridded(config, place.grid))


def conv_act(stage: StageConfig) -> Code:
    """The activation of inverted residuals in `stage`."""
    names = {"relu6": "nn.ReLU6", "hard_swish": "nn.Hardswish", "silu": "nn.SiLU"}
    return Code(names[stage.conv_act])


def _mlp(place: Place) -> Call:
    args = {"tokens": place.num_tokens, "hidden": place.stage_config.hidden_tokens}
    return call(variant("mlp_mixer"), args)


def _pool(place: Place) -> Call:
    args = {"kernel": place.stage_config.kernel, **gridded(place.config, place.grid)}
    return call(variant("pool"), args)


_MIXERS: dict[str, Callable[[Place], Call]] = {
    "mhsa": _mhsa,
    "shared": _shared,
    "ska": _ska,
    "cska": _cska,
    "dwconv": _dwconv,
    "mbconv": _mbconv,
    "mlp": _mlp,
    "pool": _pool,
    "identity": lambda place: call(variant("identity"), {}),
    "skip": lambda place: call(variant("skip"), {}),
}
