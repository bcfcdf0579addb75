"""The operators of model.onnx, and the parts of the network that they are from."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vitnas.config.network import Network
from vitnas.exported.programs import SCOPES

OTHER = "other"
"""The part of an operator that the exporter does not name."""

_PARTS = {
    "norm1": "norms",
    "norm2": "norms",
    "mlp": "MLPs",
    "nlls": "MLPs",
    "residual1": "residuals",
    "residual2": "residuals",
    "downsample": "downsampling",
}
_BLOCK = re.compile(r"stages\.(\d+)\.blocks\.(\d+)(?:\.block)?(?:\.(\w+))?")
_REATTENTION = re.compile(r"\.reattention(\.|$)|\.reattn(\.|$)")


@dataclass(frozen=True)
class Operator:
    """A node of the file.

    Attributes:
        name: of the node.
        kind: of operator, as ONNX calls it.
        mixer: the token mixer that it is from, or None.
        part: what it is left in float with: a token mixer, `softmax`, `re-attention`, `norms`,
            `MLPs`, `residuals`, `downsampling`, `stem`, `broad`, `head` or `other`.
    """

    name: str
    kind: str
    mixer: str | None
    part: str


def operators_of(proto: Any, network: Network | Mapping[str, str]) -> list[Operator]:
    """The operators of an ONNX file of vitnas, in their order.

    Args:
        proto: an `onnx.ModelProto`.
        network: the network that it is; of one with grafts, its attentions by their names, each
            with what mixes its tokens.
    """
    scopes = _scopes(proto.graph.node)
    found = []
    for node in proto.graph.node:
        inside = scopes.get(node.name, ())
        if isinstance(network, Network):
            mixer, part = _place(inside, network)
        else:
            mixer, part = _place_in_graft(inside, network)
        if node.op_type == "Softmax":
            part = "softmax"
        found.append(Operator(node.name, node.op_type, mixer, part))
    return found


def _scopes(nodes: Iterable[Any]) -> dict[str, tuple[str, ...]]:
    """The modules of each node, by its name; a node without a note is from where its input is."""
    found: dict[str, tuple[str, ...]] = {}
    made_by: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        notes = {entry.key: entry.value for entry in node.metadata_props}
        known = _listed(notes.get(SCOPES, ""))
        known = known or next((made_by[name] for name in node.input if name in made_by), ())
        found[node.name] = known
        made_by |= dict.fromkeys(node.output, known)
    return found


def _listed(text: str) -> tuple[str, ...]:
    """`"['', 'stem']"` -> `("", "stem")`; nothing where it is no such text."""
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _place(scopes: tuple[str, ...], config: Network) -> tuple[str | None, str]:
    """The token mixer and the part of an operator in these modules, the outermost first."""
    blocks = [match for scope in scopes if (match := _BLOCK.fullmatch(_cut(scope)))]
    if blocks:
        stage, block, inner = blocks[-1].groups()
        if inner == "mixer":
            mixers = config.stages[int(stage)].mixers
            mixer = mixers[min(int(block), len(mixers) - 1)]
            mixed = any(_REATTENTION.search(scope) for scope in scopes)
            return mixer, "re-attention" if mixed else mixer
        return None, _PARTS.get(inner or "", OTHER)
    modules = [re.sub(r"^stages\.\d+\.?", "", scope) for scope in scopes]
    outer = next((name.split(".")[0] for name in modules if name), "")
    if outer == "norm" or any(name.startswith(f"{outer}.norm") for name in modules):
        return None, "norms"
    return None, outer if outer in ("stem", "broad", "head") else _PARTS.get(outer, OTHER)


_PARTS_OF_TIMM = {
    "mlp": "MLPs",
    "norm": "norms",
    "norm1": "norms",
    "norm2": "norms",
    "fc_norm": "norms",
    "downsample": "downsampling",
    "patch_embed": "stem",
    "stem": "stem",
    "head": "head",
}
"""timm's names for modules; the first that an operator is in counts."""


def _place_in_graft(scopes: tuple[str, ...], mixers: Mapping[str, str]) -> tuple[str | None, str]:
    """As `_place`, in a network of timm."""
    for name, mixer in mixers.items():
        if any(scope == name or scope.startswith(f"{name}.") for scope in scopes):
            mixed = any(_REATTENTION.search(scope) for scope in scopes)
            return mixer, "re-attention" if mixed else mixer
    words = [word for scope in scopes for word in scope.split(".")]
    return None, next((_PARTS_OF_TIMM[word] for word in words if word in _PARTS_OF_TIMM), OTHER)


def _cut(scope: str) -> str:
    """A module of a block without what is inside the block's own parts."""
    match = _BLOCK.match(scope)
    return match.group(0) if match else scope


def counted(operators: Iterable[Operator]) -> dict[str, int]:
    """How many there are of each kind, the most frequent first."""
    return dict(Counter(sorted(one.kind for one in operators)).most_common())
