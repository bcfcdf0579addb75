"""model.py of a network: its text, from the templates of the parts that it has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from vitnas import __version__
from vitnas.config.baseline import Baseline
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line
from vitnas.exported.preprocessing import Preprocessing
from vitnas.exported.source.folding import (
    Uses,
    are_sized,
    constants_of,
    made_residual,
    parameters_of,
    uses_of,
    with_name,
)
from vitnas.exported.source.layout import (
    Call,
    Code,
    call,
    changed,
    literal,
    signature,
    wrapped,
)
from vitnas.exported.source.merging import merged
from vitnas.exported.source.mixers import Variant
from vitnas.exported.source.names import names_of
from vitnas.exported.source.network import network_facts
from vitnas.exported.source.plan import pooling_text, stage_calls, stepped_of
from vitnas.exported.source.statements import Assignment, assigned, statements

_HELPERS = (
    "named",
    "stage",
    "on_grid",
    "to_windows",
    "from_windows",
    "by_parts",
    "fixed_order",
    "CReLU",
    "MaxBlurPool",
    "StarReLU",
    "SquaredReLU",
    "TokenBatchNorm",
    "ConvolvedTokens",
    "LearnedResidual",
    "BranchResidual",
    "SkipResidual",
    "ScaledResidual",
    "Residual",
    "feed_forward",
    "HeadMixer",
    "SqueezeExcite",
    "inverted_residual",
    "ConditionalPosition",
    "Shifts",
    "LoopedBlock",
)
"""Parts that others use, each before those that use it."""

_ORDER = (
    *("identity", "skip", "pool", "mlp_mixer", "dwconv", "mbconv"),
    *("mhsa", "grouped", "shared", "ska", "cska"),
    *("block", "nll", "recursion", "loop", "downsample", "stage"),
)
_IMPORTS = {
    "import json": "",
    "import math": "math.",
    "import sys": "",
    "from collections import OrderedDict": "OrderedDict",
    "from collections.abc import Sequence": "Sequence[",
    "from hashlib import sha256": "",
    "from pathlib import Path": "",
    "\nimport torch": "",
    "import torch.nn.functional as F": "F.",
    "from torch import Tensor, nn": "",
}
"""Lines at the head, and what shows that a line is needed; nothing if it always is."""
_DROPPED = [name for name in ModelConfig.model_fields if name.endswith("_rate")]
"""Fields of a training that the file does not have: dropout and drop-path."""
_NORMS = {
    "batchnorm": "batch norm",
    "layernorm": "layer norm",
    "layernorm_nobias": "layer norm",
}
_MAPS = {"softmax": "softmax", "gelu": "GELU", "relu": "ReLU", "star_relu": "StarReLU"}


def model_source(config: ModelConfig, preprocessing: Preprocessing, title: str) -> str:
    """The text of model.py. What it cannot express, `unexpressed` says before.

    Args:
        config: the network.
        preprocessing: how an image becomes its input.
        title: of the file; one line.
    """
    facts = network_facts(config)
    stages = merged(stage_calls(config))
    stepped = stepped_of(stages)
    stages = [changed(stage, lambda made: _of_torch(made, stepped, facts)) for stage in stages]
    uses = uses_of(stages)
    names = names_of(sorted(uses, key=lambda found: _ORDER.index(found.part)))
    stages = [changed(stage, lambda made: with_name(made, names, uses)) for stage in stages]
    net = {**facts, "sized": are_sized(uses)}
    made = statements(net["plain_stem"], _stages(stages), net["plain_head"])
    net |= zip(("plain_stem", "stages", "plain_head"), made, strict=True)
    net["tapping"] = [names[found] for found in names if dict(found.options).get("tap")]
    environment = _environment(net)
    parts = [
        _part(environment, found, names, uses[found], found in stepped, net) for found in names
    ]
    if not net["plain_stem"]:
        parts.append(environment.get_template("stem.py.j2").render())
    if net["taps"]:
        parts.append(environment.get_template("broad.py.j2").render())
    parts.append(environment.get_template("network.py.j2").render())
    body = "\n\n\n".join(part.strip("\n") for part in _with_helpers(environment, parts))
    line = one_line(config.model_copy(update=dict.fromkeys(_DROPPED, 0.0)))
    return _whole(environment, body, title, line, config.image_hw, preprocessing)


def plain_source(
    baseline: Baseline, layers: Sequence[str], preprocessing: Preprocessing, title: str
) -> str:
    """The text of model.py of a baseline that is plain layers, one after the other.

    Args:
        baseline: the network.
        layers: each as a Python expression, as `vitnas.exported.source.plain` has them.
        preprocessing, title: as of `model_source`.
    """
    shape = {"in_chans": baseline.in_chans, "num_classes": baseline.num_classes}
    environment = _templates().overlay()
    environment.globals = {**environment.globals, "net": {**shape, "layers": layers}}
    body = environment.get_template("plain.py.j2").render(hw=baseline.image_hw).strip("\n")
    line = baseline.line()
    return _whole(environment, body, title, line, baseline.image_hw, preprocessing)


def _of_torch(made: Call, stepped: set[Variant], facts: Mapping[str, Any]) -> Call:
    """What does nothing and is told nothing, as torch has it."""
    level = {"identity": "mixer_step", "skip": "block_step"}.get(getattr(made.name, "part", ""))
    if level is None or facts["maps"] or (facts[level] and made.name in stepped):
        return made
    return call("nn.Identity", {})


def _whole(
    environment: Environment,
    body: str,
    title: str,
    line: str,
    hw: tuple[int, int],
    preprocessing: Preprocessing,
) -> str:
    """The file around the network's own code."""
    text = environment.get_template("model.py.j2").render(
        title=title,
        one_line=line,
        version=__version__,
        hw=hw,
        body=body,
        pre=preprocessing,
        mean=_by_channel(preprocessing.mean),
        std=_by_channel(preprocessing.std),
        imports=_imports(body),
    )
    text = re.sub(r"\n{4,}", "\n\n\n", text).strip("\n")
    return "\n".join(map(wrapped, text.split("\n"))) + "\n"


def _by_channel(values: Sequence[float]) -> str:
    """A number for grey images, else one for each channel."""
    found = tuple(round(value, 6) for value in values)
    return literal(found if len(found) > 1 else found[0])


def _stages(stages: Sequence[Call]) -> list[Assignment]:
    """What makes the stages, each with a name, so that they are not deep inside."""
    if len(stages) == 1:
        return assigned("self.stages", call("nn.Sequential", {"blocks": tuple(stages)}))
    names = ("first", "second", "third", "fourth", "fifth")[: len(stages)]
    made = zip(names, stages, strict=True)
    each = [assignment for name, one in made for assignment in assigned(name, one)]
    together = Code(f"nn.Sequential({', '.join(names)})")
    return [*each, Assignment("self.stages", together)]


def _imports(body: str) -> str:
    wanted = [line for line, name in _IMPORTS.items() if re.search(rf"\b{re.escape(name)}", body)]
    return "\n".join(wanted)


def _part(
    environment: Environment,
    variant: Variant,
    names: Mapping[Variant, str],
    uses: Uses,
    is_stepped: bool,
    net: Mapping[str, Any],
) -> str:
    constants = constants_of(uses)
    types = parameters_of(uses, constants)

    def value(key: str) -> str:
        return literal(constants[key]) if key in constants else key

    def half(key: str) -> str:
        return literal(constants[key] // 2) if key in constants else f"{key} // 2"

    options = _described(variant)
    maps, step = ", maps: list[Tensor]" if net["maps"] else "", ", step: int = 0"
    return environment.get_template(f"{variant.part}.py.j2").render(
        name=names[variant],
        o=options,
        c=constants,
        init=signature(types),
        v=value,
        half=half,
        passes=value("passes") if "passes" in {*types, *constants} else None,
        base=names[options["base"]] if "base" in options else "",
        width="width" if options.get("wide") else "dim",
        step=", step" if is_stepped else "",
        at="step" if is_stepped and net["mixer_step"] else "0",
        mixer_parameters=maps + step * (is_stepped and net["mixer_step"]),
        mixer_arguments=net["maps"] * ", maps" + ", step" * (is_stepped and net["mixer_step"]),
        block_parameters=maps + step * (is_stepped and net["block_step"]),
    )


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
        norm = _NORMS[options["norm"]]
        rest = f", then {norm} and MLP, each" if options["mlp"] else ","
        options["doc"] = f"{norm.capitalize()} and token mixer{rest} added to its input."
    if variant.part == "nll":
        options["norm_words"] = _NORMS[options["norm"]]
    return options


def _with_helpers(environment: Environment, parts: Sequence[str]) -> list[str]:
    """The parts, behind what they use."""
    found = list(parts)
    for name in reversed(_HELPERS):
        used = rf"\b{name}\b" if name[0].isupper() else rf"\b{name}\("
        if any(re.search(used, part) for part in found):
            found.insert(0, environment.get_template(f"helpers/{name}.py.j2").render())
    return found


def _environment(net: Mapping[str, Any]) -> Environment:
    environment = _templates().overlay()
    environment.globals = {**environment.globals, "net": net}
    parameter, argument = (", maps: list[Tensor]", ", maps") if net["maps"] else ("", "")
    environment.globals |= {"maps_parameter": parameter, "maps_argument": argument}
    environment.globals["loop_parameters"] = parameter + net["loop_step"] * ", step: int = 0"
    for level in ("block", "loop"):
        environment.globals[f"{level}_arguments"] = argument + net[f"{level}_step"] * ", step"
    grid = "" if net["square"] else ", self.grid"
    environment.globals |= {
        "on_grid": lambda layer, tokens: f"on_grid({layer}, {tokens}{grid})",
        "inverted_residual": net["inverted_call"],
        "pooling": partial(pooling_text, net["pooling"]),
        "made_residual": partial(made_residual, net["sized"]),
        "norm": partial(_norm, net["norm_eps"]),
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
