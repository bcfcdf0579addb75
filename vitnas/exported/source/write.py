"""model.py of a network: its text, from the templates of the parts that it has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from vitnas import __version__
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line
from vitnas.exported.preprocessing import Preprocessing
from vitnas.exported.source.layout import (
    STARRED,
    Call,
    Repeat,
    literal,
    printed,
    signature,
    wrapped,
)
from vitnas.exported.source.mixers import Variant
from vitnas.exported.source.names import names_of
from vitnas.exported.source.network import network_facts
from vitnas.exported.source.plan import stage_calls

_TYPES = {
    "scale": "float",
    "grid": "tuple[int, int]",
    "groups": "tuple[int, ...]",
    **dict.fromkeys(
        ("mixer", "block", "layers", "downsample", "position", "blocks", "nlls"), "nn.Module"
    ),
}
"""Of parameters; the others are `int`."""

_FOLDED = {"block": ("passes",), "recursion": ("passes",)}
"""Parameters that are constants of a class whose objects all have the same value, by its part;
`kernel` is one in every part."""

_HELPERS = (
    "named",
    "stage",
    "to_picture",
    "to_tokens",
    "to_windows",
    "from_windows",
    "by_parts",
    "fixed_order",
    "CReLU",
    "StarReLU",
    "SquaredReLU",
    "TokenBatchNorm",
    "ConvolvedTokens",
    "LearnedResidual",
    "BranchResidual",
    "SkipResidual",
    "ScaledResidual",
    "feed_forward",
    "HeadMixer",
    "SqueezeExcite",
    "inverted_residual",
    "ConditionalPosition",
    "Shifts",
)
"""Parts that others use, each before those that use it."""

_ORDER = (
    *("identity", "pool", "mlp_mixer", "dwconv", "mbconv", "mhsa", "shared", "ska", "cska"),
    *("block", "nll", "recursion", "downsample", "stage"),
)
_RESIDUALS = {
    "lrc": "LearnedResidual()",
    "lrc_branch": "BranchResidual()",
    "lrc_identity": "SkipResidual()",
    "scale": "ScaledResidual(dim)",
}
_MAPS = {"softmax": "softmax", "gelu": "GELU", "relu": "ReLU", "star_relu": "StarReLU"}


def model_source(config: ModelConfig, preprocessing: Preprocessing, title: str) -> str:
    """The text of model.py. What it cannot express, `unexpressed` says before.

    Args:
        config: the network.
        preprocessing: how an image becomes its input.
        title: of the file; one line.
    """
    stages = stage_calls(config)
    uses = _uses(stages)
    names = names_of(sorted(uses, key=lambda found: _ORDER.index(found.part)))
    stages = [_named(stage, names, uses) for stage in stages]
    lines = [line for stage in stages for line in printed(stage, 12, after=",")]
    net = {**network_facts(config), "stages": [line[12:] for line in lines]}
    environment = _environment(net)
    parts = [_part(environment, found, name, uses[found]) for found, name in names.items()]
    if not net["plain_stem"]:
        parts.append(environment.get_template("stem.py.j2").render())
    if net["taps"]:
        parts.append(environment.get_template("broad.py.j2").render())
    parts.append(environment.get_template("network.py.j2").render())
    body = "\n\n\n".join(part.strip("\n") for part in _with_helpers(environment, parts))
    text = environment.get_template("model.py.j2").render(
        title=title,
        one_line=one_line(config),
        version=__version__,
        hw=config.image_hw,
        body=body,
        pre=preprocessing,
        mean=literal(tuple(round(value, 6) for value in preprocessing.mean)),
        std=literal(tuple(round(value, 6) for value in preprocessing.std)),
        imports=_imports(body),
    )
    text = re.sub(r"\n{4,}", "\n\n\n", text).strip("\n")
    return "\n".join(map(wrapped, text.split("\n"))) + "\n"


def _imports(body: str) -> str:
    lines = ["import json", "import math", "import sys", "from collections import OrderedDict"]
    lines += ["from pathlib import Path", "", "import torch", "import torch.nn.functional as F"]
    lines += ["from torch import Tensor, nn"]
    unused = {"import math": "math.", "import torch.nn.functional as F": "F."}
    unused["from collections import OrderedDict"] = "OrderedDict"
    kept = [line for line in lines if re.search(rf"\b{re.escape(unused.get(line, ''))}", body)]
    return "\n".join(kept if "" in kept else lines)


def _uses(stages: Sequence[Call]) -> dict[Variant, list[dict[str, Any]]]:
    """The arguments of every object, by its variant."""
    uses: dict[Variant, list[dict[str, Any]]] = {}
    for made in _calls(stages):
        if isinstance(made.name, Variant):
            uses.setdefault(made.name, []).append(dict(made.args))
    return uses


def _calls(value: Any) -> Iterator[Call]:
    if isinstance(value, Repeat):
        yield from _calls(value.item)
    elif isinstance(value, (tuple, list)) and not isinstance(value, Variant):
        for item in value:
            yield from _calls(item)
    elif isinstance(value, Call):
        yield value
        for _, item in value.args:
            yield from _calls(item)


def _constants(variant: Variant, uses: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = ("kernel", *_FOLDED.get(variant.part, ()))
    found = {name: {use.get(name) for use in uses} for name in names}
    return {
        name: next(iter(one)) for name, one in found.items() if len(one) == 1 and None not in one
    }


def _named(value: Any, names: Mapping[Variant, str], uses: Mapping[Variant, Any]) -> Any:
    """The objects with the names of their classes, without arguments that are constants there."""
    if isinstance(value, Repeat):
        return Repeat(_named(value.item, names, uses), value.variable, value.start, value.stop)
    if isinstance(value, tuple):
        return tuple(_named(item, names, uses) for item in value)
    if not isinstance(value, Call):
        return value
    name = value.name
    folded = _constants(name, uses[name]) if isinstance(name, Variant) else {}
    kept = [(key, item) for key, item in value.args if key not in folded]
    args = tuple((key, _named(item, names, uses)) for key, item in kept)
    return Call(names.get(value.name, value.name), args)


def _part(
    environment: Environment, variant: Variant, name: str, uses: Sequence[Mapping[str, Any]]
) -> str:
    constants = _constants(variant, uses)
    parameters = dict.fromkeys(key for use in uses for key in use if key not in constants)
    starred = {key: parameters.pop(key) for key in list(parameters) if key in STARRED}
    types = {key: _TYPES.get(key, "int") for key in (*_before(parameters), *starred)}
    types |= {key: _TYPES.get(key, "int") for key in parameters}
    if any("passes" not in use for use in uses):
        types |= {"passes": "int = 1"} if "passes" in types else {}
    options = _described(variant)

    def value(key: str) -> str:
        return literal(constants[key]) if key in constants else key

    def half(key: str) -> str:
        return literal(constants[key] // 2) if key in constants else f"{key} // 2"

    return environment.get_template(f"{variant.part}.py.j2").render(
        name=name,
        o=options,
        init=signature(types),
        v=value,
        half=half,
        passes=value("passes") if "passes" in types or "passes" in constants else None,
        width="width" if options.get("wide") else "dim",
    )


def _before(parameters: Mapping[str, Any]) -> list[str]:
    """Parameters before a starred one; `passes` comes after it, by its name."""
    return [key for key in parameters if key != "passes" or "mixer" in parameters]


def _described(variant: Variant) -> dict[str, Any]:
    """The options, and words for the docstring."""
    options = dict(variant.options)
    if "act" in options:
        logits = "M" if variant.part == "cska" else "Q K^T"
        divided = "tau sqrt(d)" if options["learnt_tau"] else "sqrt(d)"
        divided = f"({divided})" if options["learnt_tau"] else divided
        inside = f"scale {logits}" if options["scale"] else f"{logits} / {divided}"
        options["formula"] = f"{_MAPS[options['act']]}({inside})"
    if variant.part == "block":
        rest = ", then norm and MLP, each" if options["mlp"] else ","
        options["doc"] = f"Norm and token mixer{rest} added to its input."
    return options


def _with_helpers(environment: Environment, parts: Sequence[str]) -> list[str]:
    """The parts, behind what they use."""
    found = list(parts)
    for name in reversed(_HELPERS):
        if any(re.search(rf"\b{name}\(", part) for part in found):
            found.insert(0, environment.get_template(f"helpers/{name}.py.j2").render())
    return found


def _environment(net: Mapping[str, Any]) -> Environment:
    environment = _templates().overlay()
    environment.globals = {**environment.globals, "net": net}
    outside, given = (", maps: list[Tensor]", ", maps") if net["maps"] else ("", "")
    step = net["step"]
    environment.globals |= {
        "parameters": outside + (", step: int = 0" if step else ""),
        "parameters_outside": outside,
        "arguments": given + (", step" if step else ""),
        "arguments_outside": given,
        "norm": partial(_norm, net["norm_eps"]),
        "residual": _RESIDUALS.__getitem__,
        "scaled": lambda code: code if net["scale"] == "1.0" else f"{net['scale']} * {code}",
        "nobias": lambda has: "" if has else ", bias=False",
    }
    return environment


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("vitnas.exported.source"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _norm(eps: str, kind: str, dim: Any = "dim", passes: str | None = None) -> str:
    if kind == "batchnorm":
        return f"TokenBatchNorm({dim}, {passes})" if passes else f"TokenBatchNorm({dim})"
    bias = ", bias=False" if kind == "layernorm_nobias" else ""
    return f"nn.LayerNorm({dim}, eps={eps}{bias})"
