"""The token mixer of a block as an object that model.py makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vitnas.config.model import ModelConfig
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
    return call(variant("shared", wide="width" in args, **_convolved(place)), args)


def _ska(place: Place) -> Call:
    args = {**_attention_args(place), "tokens": place.num_keys, **_windowed(place)}
    return call(variant("ska", **_attention_options(place, **_static(place))), args)


def _cska(place: Place) -> Call:
    stage = place.stage_config
    args = {**_attention_args(place), "grid": place.grid, "kernel": stage.key_kernel}
    args |= _windowed(place)
    if stage.key_stride > 1:
        args["keys"] = place.num_keys
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
        args |= {"grid": place.grid, "conv_kernel": stage.qkv_kernel}
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
    args = {"dim": stage.embed_dim, "hidden": stage.hidden_channels, "grid": place.grid}
    return call(variant("dwconv"), {**args, "kernel": stage.kernel})


def _mbconv(place: Place) -> Call:
    config, stage = place.config, place.stage_config
    act = {"relu6": "nn.ReLU6", "hard_swish": "nn.Hardswish", "silu": "nn.SiLU"}[stage.conv_act]
    dim, residual = stage.embed_dim, config.residual_of(stage)
    widths = {"before": dim, "hidden_between": stage.hidden_channels, "after": dim}
    layers: dict[str, Any] = {**widths, "act": Code(act)}
    if stage.kernel != 3 and len(kernels_of(config)) > 1:
        layers["kernel"] = stage.kernel
    if stage.se_channels:
        layers["squeezed"] = stage.se_channels
    args: dict[str, Any] = {"dim": dim} if residual == "scale" else {}
    args |= {"layers": call("inverted_residual", layers), "grid": place.grid}
    return call(variant("mbconv", residual=residual), args)


def kernels_of(config: ModelConfig) -> tuple[int, ...]:
    """The different kernels of all inverted residuals, those between the stages included."""
    own = {stage.only("mbconv").kernel for stage in config.stages if "mbconv" in stage.kinds}
    between = {3} if strides_inside(config) else set()
    return tuple(sorted(own | between))


def strides_inside(config: ModelConfig) -> bool:
    """Whether inverted residuals halve the grid between stages."""
    return len(config.stages) > 1 and config.downsample in ("separable", "mbconv")


def _mlp(place: Place) -> Call:
    args = {"tokens": place.num_tokens, "hidden": place.stage_config.hidden_tokens}
    return call(variant("mlp_mixer"), args)


def _pool(place: Place) -> Call:
    return call(variant("pool"), {"grid": place.grid, "kernel": place.stage_config.kernel})


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
}
