"""The function of model.py that makes inverted residuals: in blocks, and between stages.

It has a parameter only for what differs in the network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from vitnas.config.model import ModelConfig
from vitnas.exported.source.layout import definition
from vitnas.exported.source.mixers import conv_act


class InvertedShape(NamedTuple):
    """What one inverted residual has; `squeezed` is 0 without squeeze-excitation."""

    expands: bool
    act: str
    kernel: int
    squeezed: int
    stride: int


def inverted_facts(config: ModelConfig) -> dict[str, Any]:
    """What the templates read, and `inverted_call`, which writes a call of the function."""
    between = _between(config)
    found = [*_in_blocks(config), *between]
    first = found[0] if found else InvertedShape(False, "nn.ReLU6", 3, 0, 1)
    differs = {name: len({getattr(one, name) for one in found}) > 1 for name in first._fields}
    squeezes = _quantity([one.squeezed > 0 for one in found])
    expands = _quantity([one.expands for one in found])
    types = {} if expands == "none" else {"before": "int"}
    types |= {"hidden": "int", "after": "int"}
    types |= {"act": "type[nn.Module]"} if differs["act"] else {}
    types |= {name: "int" for name in ("kernel", "squeezed") if differs[name]}
    types |= {"stride": "int = 1"} if differs["stride"] else {}
    side, half = str(first.kernel), str(first.kernel // 2)
    if differs["kernel"]:
        side, half = "kernel", "kernel // 2"
    return {
        "inverted_between": bool(between),
        "inverted_residual": definition("inverted_residual", types, "nn.Sequential"),
        "inverted_doc": _doc(expands, "" if differs["kernel"] else f" {side}x{side}", squeezes),
        "inverted_kernel": f"{side}, {'stride' if differs['stride'] else first.stride}, {half}",
        "inverted_act": "act" if differs["act"] else first.act,
        "inverted_squeezed": "squeezed" if differs["squeezed"] else first.squeezed,
        "act_differs": differs["act"],
        "expands": expands,
        "squeezes": squeezes,
        "inverted_call": _call(types),
    }


def _doc(expands: str, side: str, squeezes: str) -> str:
    first = "Depthwise" if expands == "none" else "1x1 convolution, depthwise"
    squeeze = "" if squeezes == "none" else ", squeeze-excitation"
    return f"{first}{side}{squeeze}, 1x1 convolution."


def _call(parameters: Collection[str]) -> Callable[..., str]:
    def text(before: str, hidden: str, after: str, act: str, **others: Any) -> str:
        given = {"before": before, "hidden": hidden, "after": after, "act": act}
        args = [value for name, value in given.items() if name in parameters]
        others = {"kernel": 3, "squeezed": 0, **others}
        args += [f"{name}={value}" for name, value in others.items() if name in parameters]
        return f"inverted_residual({', '.join(args)})"

    return text


def _in_blocks(config: ModelConfig) -> list[InvertedShape]:
    found = []
    for stage in config.stages:
        if "mbconv" in stage.kinds:
            own = stage.only("mbconv")
            expands = own.hidden_channels != own.embed_dim
            found.append(
                InvertedShape(expands, conv_act(own), own.kernel, own.se_channels, stride=1)
            )
    return found


def _between(config: ModelConfig) -> list[InvertedShape]:
    if config.downsample not in ("separable", "mbconv"):
        return []
    act, found = "nn.ReLU" if config.downsample == "separable" else "nn.Hardswish", []
    for index in range(1, len(config.stages)):
        hidden, squeezed = config.downsample_channels(index)
        expands = hidden != config.stages[index - 1].embed_dim
        found.append(InvertedShape(expands, act, 3, squeezed, stride=2))
    return found


def _quantity(found: list[bool]) -> str:
    return "all" if found and all(found) else "some" if any(found) else "none"
