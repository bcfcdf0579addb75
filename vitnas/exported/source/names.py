"""Names of the classes in model.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitnas.exported.source.mixers import Variant

_NAMES = {
    "grouped": "GroupAttention",
    "shared": "ReusedAttention",
    "ska": "StaticKeyAttention",
    "cska": "ConvStaticKeyAttention",
    "dwconv": "SeparableConv",
    "mbconv": "InvertedResidual",
    "mlp_mixer": "TokenMlp",
    "pool": "Pool",
    "identity": "Identity",
    "skip": "Skip",
    "nll": "NonLinearLayer",
    "recursion": "Recursion",
    "loop": "Loop",
    "downsample": "Downsample",
}
_WORDS: dict[tuple[str, Any], str] = {
    ("norm", "batchnorm"): "BatchNorm",
    ("norm", "layernorm_nobias"): "Unbiased",
    ("act", "gelu"): "Gelu",
    ("act", "relu"): "Relu",
    ("act", "star_relu"): "StarRelu",
    ("mask", True): "Masked",
    ("wide", True): "Wide",
    ("gives_map", True): "Sharing",
    ("q_proj", False): "Direct",
    ("windows", True): "Window",
    ("conv", True): "Convolved",
    ("strided", True): "Strided",
}


def names_of(variants: Sequence[Variant]) -> dict[Variant, str]:
    """A name for each: what it is, and if several are the same, in what they differ."""
    names: dict[Variant, str] = {}
    for variant in variants:
        base = _base(variant)
        alike = [other for other in variants if _base(other) == base]
        name = f"{_difference(variant, alike)}{base}" if len(alike) > 1 else base
        taken = sum(other.rstrip("0123456789") == name for other in names.values())
        names[variant] = f"{name}{taken + 1}" if taken else name
    return names


def _base(variant: Variant) -> str:
    options = dict(variant.options)
    if variant.part == "mhsa":
        kind = "Group" if options["groups"] else "Re" if options["mixes"] is True else ""
        return f"{kind}Attention"
    if variant.part == "block":
        return "Block" if options["mlp"] else "MixerBlock"
    if variant.part == "stage":
        return "LoopedStage" if options["external"] else "Stage"
    return _NAMES[variant.part]


def _difference(variant: Variant, alike: Sequence[Variant]) -> str:
    """Words for the options that are not the same in all of `alike`."""
    others = [dict(other.options) for other in alike]
    found = ""
    for key, value in variant.options:
        if len({repr(other.get(key)) for other in others}) > 1:
            found += _WORDS.get((key, value), "")
    return found
