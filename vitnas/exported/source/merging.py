"""Attentions that differ in little share their code.

One class has re-attention or not where a network has both, and one that slices its tokens into
groups is the plain one with something before and after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vitnas.exported.source.layout import Call, call, calls, changed
from vitnas.exported.source.mixers import Variant

_MIXING = ("mixes", "fused")
_GROUPING = ("groups", "permuted", "first_pass", "inverts")


def merged(stages: Sequence[Call]) -> list[Call]:
    """The stages, where attentions share classes."""
    found = _variants(stages)
    with_maps = {_without(one, _MIXING) for one in found if dict(one.options).get("mixes")}
    fused = {_without(one, _MIXING) for one in found if dict(one.options).get("mixes") is False}
    stages = [changed(stage, lambda made: _mixing(made, with_maps & fused)) for stage in stages]
    plain = {
        _without(one, (*_MIXING, *_GROUPING)): one
        for one in _variants(stages)
        if one.part == "mhsa" and _is_plain(one)
    }
    return [changed(stage, lambda made: _grouped(made, plain)) for stage in stages]


def _variants(stages: Sequence[Call]) -> list[Variant]:
    return [made.name for made in calls(stages) if isinstance(made.name, Variant)]


def _mixing(made: Call, both: set[Variant]) -> Call:
    """The attention as one of a class whose argument `mixes` says whether heads are mixed."""
    if not isinstance(made.name, Variant) or _without(made.name, _MIXING) not in both:
        return made
    options = dict(made.name.options)
    name = Variant(made.name.part, _items(options | {"mixes": "some", "fused": False}))
    return call(name, {**dict(made.args), "mixes": options["mixes"]})


def _grouped(made: Call, plain: dict[Variant, Variant]) -> Call:
    """The attention in groups as the plain one, if there is one, with slices around it."""
    if not isinstance(made.name, Variant) or made.name.part != "mhsa":
        return made
    options = dict(made.name.options)
    base = plain.get(_without(made.name, (*_MIXING, *_GROUPING)))
    around = any(options[name] for name in ("mixes", "gives_map", "tap", "conv"))
    if base is None or around or not options["groups"]:
        return made
    return call(Variant("grouped", _items({**options, "base": base})), dict(made.args))


def _is_plain(variant: Variant) -> bool:
    """Whether it is an attention without groups that need not mix its heads."""
    options = dict(variant.options)
    return not options["groups"] and options["mixes"] is not True


def _without(variant: Variant, names: Sequence[str]) -> Variant:
    return Variant(variant.part, tuple(one for one in variant.options if one[0] not in names))


def _items(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(options.items())
