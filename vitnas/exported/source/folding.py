"""What the objects of a class have in common stands in the class, and is no argument of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vitnas.exported.source.layout import Call, Code, Listed, call, calls, is_starred
from vitnas.exported.source.mixers import Variant

Uses = Sequence[Mapping[str, Any]]
"""The arguments of each object of a class."""

_TYPES = {
    "scale": "float",
    "grid": "tuple[int, int]",
    "groups": "tuple[int, ...]",
    "act": "type[nn.Module]",
    "residual": "type[nn.Module]",
    **dict.fromkeys(("mixer", "block", "downsample", "position", "blocks", "nlls"), "nn.Module"),
}
"""Of parameters; the others are `int`."""

_FOLDED = ("act", "conv_kernel", "groups", "kernel", "passes", "residual", "squeezed", "stride")
"""Parameters that are constants of a class whose objects all have the same value."""

_RESIDUALS = {
    "plain": "Residual",
    "lrc": "LearnedResidual",
    "lrc_branch": "BranchResidual",
    "lrc_identity": "SkipResidual",
    "scale": "ScaledResidual",
}


def uses_of(stages: Sequence[Call]) -> dict[Variant, list[dict[str, Any]]]:
    """The arguments of every object, by its variant."""
    uses: dict[Variant, list[dict[str, Any]]] = {}
    for made in calls(stages):
        if isinstance(made.name, Variant):
            uses.setdefault(made.name, []).append(dict(made.args))
    return uses


def constants_of(uses: Uses) -> dict[str, Any]:
    """The parameters of a class that all of `uses` give the same value, and `hidden` as code."""
    found = {name: {use.get(name) for use in uses} for name in _FOLDED}
    same = {
        name: next(iter(one)) for name, one in found.items() if len(one) == 1 and None not in one
    }
    multiples = {_multiple(use) for use in uses}
    multiple = next(iter(multiples))
    return same | ({"hidden": multiple} if len(multiples) == 1 and multiple else {})


def _multiple(use: Mapping[str, Any]) -> Code | None:
    """The channels inside as a multiple of those outside; None where it is no whole one."""
    for outside in ("dim", "before"):
        if outside in use and use.get("hidden"):
            times, rest = divmod(use["hidden"], use[outside])
            return None if rest else Code(f"{times} * {outside}" if times > 1 else outside)
    return None


def with_name(made: Call, names: Mapping[Variant, str], uses: Mapping[Variant, Uses]) -> Call:
    """The object with the name of its class, without arguments that are constants there."""
    if not isinstance(made.name, Variant):
        return made
    given, folded = dict(made.args), constants_of(uses[made.name])
    if "residual" in given:
        given["residual"] = Code(_RESIDUALS[given["residual"]])
    left_out = {key for key, value in given.items() if value is False} | set(folded)
    return call(names[made.name], {k: v for k, v in given.items() if k not in left_out})


def parameters_of(uses: Uses, constants: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of a class and their types, those with a default last.

    Behind one that takes any number of arguments are those that are given by name.
    """
    names = dict.fromkeys(key for use in uses for key in use if key not in constants)
    types = {key: _TYPES.get(key, "int") for key in names}
    if "mixes" in types:
        types["mixes"] = "bool = False"
    if any(isinstance(use.get("nlls"), Listed) for use in uses):
        types["nlls"] = "Sequence[nn.Module]" + " = ()" * any("nlls" not in use for use in uses)
    has_star = any(is_starred(*one) for one in types.items())

    def order(one: tuple[str, str]) -> tuple[int, bool]:
        is_named = has_star and one[0] in ("passes", "nlls")
        return 1 if is_starred(*one) else 2 * is_named, "=" in one[1]

    return dict(sorted(types.items(), key=order))


def made_residual(sized: bool, kind: str | None) -> str:
    """What makes a residual; nothing where it is plain in all objects of a class."""
    if kind == "plain":
        return ""
    dim = "dim" if sized or kind == "scale" else ""
    return f"{_RESIDUALS[kind] if kind else 'residual'}({dim})"


def are_sized(uses: Mapping[Variant, Uses]) -> bool:
    """Whether residuals are arguments and one kind needs the channels, so that all get them."""
    kinds = [{use.get("residual") for use in found} for found in uses.values()]
    return any(len(one) > 1 and "scale" in one for one in kinds)
