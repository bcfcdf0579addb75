"""A network in one readable line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from vitnas.config.canonical import canonical
from vitnas.config.field_rule import FieldRule
from vitnas.config.matters import NETWORK_RULES, STAGE_RULES
from vitnas.config.mixers import short_name
from vitnas.config.network import Network
from vitnas.config.notation import format_schedule
from vitnas.config.parts import Frozen
from vitnas.config.stage import StageConfig

_WORDS = {
    "broad.gamma": "gamma",
    "class_token": "class token",
    "distillation_token": "distillation token",
    "head.kind": "head",
    "key_kernel": "key",
    "kernel_qkv": "qkv kernel",
    "kernel_size": "kernel",
    "mlp_ratio": "mlp",
    "pos_embed": "positions",
    "reattention_blocks": "re",
    "se_ratio": "se",
    "stem.kind": "stem",
    "stem.stride": "stride",
    "stride_kv": "kv stride",
    "temperature.kind": "temperature",
}
"""Shorter words for some fields; all others have their address in the model file."""

_FIRST = ("class_token", "distillation_token", "reattention_blocks", "broad.gamma")
_OF_IMAGES = {"name", "img_size", "in_chans", "num_classes", "stages"}
_IN_HEAD = {
    *("token_mixer", "depth", "embed_dim", "num_heads", "head_dim", "attn_dim"),
    *("windows", "passes", "groups", "loop", "nll_ratio"),
}


def one_line(config: Network) -> str:
    """A network as one line of a table; different networks have different lines.

    `2x dwconv 32 > 3x mhsa 64 h2 [8,2] nll 1 mlp 3 | re 2 | gamma 0.6`: stages from left to right
    as depth, token mixer, width, heads, windows, group schedule (when there is more than one pass
    or group), `external` for that loop, NLL ratio and other fields of the stage; then what holds
    for the whole network, or for all stages that read it. What is at its default is left out.
    Images and classes are left out, too: they are the data's.
    """
    return _line_of(config).text()


def line_parts(config: Network) -> tuple[list[str], list[str]]:
    """Of the same line the text of each stage, and what holds for the whole network."""
    return _line_of(config).parts()


def short_line(config: Network, sized: bool = False) -> str:
    """The line without what the whole network has beside its stages: stem, downsampling, head.

    `sized` adds the image size.
    """
    line = _line_of(config)
    text = line.text({*line.whole}.difference(_FIRST))
    return f"{text} | {_size(config)}" if sized else text


def whole_lines(configs: Sequence[Network]) -> list[str]:
    """The line of each network; where they have several image sizes, each ends with its own."""
    return _sized(configs, map(one_line, configs))


def one_lines(configs: Sequence[Network]) -> list[str]:
    """The lines of networks that stand in one list, without the fields in which all are alike.

    A field is left out if all networks, or all stages, that read it have the same value. Where
    networks have several image sizes, each line ends with its own.
    """
    lines = [_line_of(config) for config in configs]
    found = defaultdict[str, set[str]](set)
    for line in lines:
        for marks in (*line.stages, line.whole):
            for address, mark in marks.items():
                found[address].add(mark)
    alike = {address for address, marks in found.items() if len(marks) == 1}
    return _sized(configs, (line.text(alike if len(lines) > 1 else ()) for line in lines))


def _sized(configs: Sequence[Network], lines: Iterable[str]) -> list[str]:
    sizes = [_size(config) for config in configs]
    if len({*sizes}) <= 1:
        return list(lines)
    return [f"{line} | {size}" for line, size in zip(lines, sizes, strict=True)]


def _size(config: Network) -> str:
    return _mark("img_size", config.img_size)


class _Line:
    """What may stand in a network's line: heads of its stages, and marks by the field's address.

    A field that is read and is at its default has an empty mark. `stages.norm` is a stage's field,
    `norm` the network's.
    """

    def __init__(self, config: Network) -> None:
        network = canonical(config)
        both = zip(network.stages, config.stages, strict=True)
        self.heads = [_head(stage, given) for stage, given in both]
        self.stages = [dict(_stage_marks(stage, network)) for stage in network.stages]
        self.whole = dict(_network_marks(network))

    def text(self, without: Collection[str] = ()) -> str:
        """The line without the fields at these addresses."""
        stages, whole = self.parts(without)
        return " | ".join((" > ".join(stages), *whole))

    def parts(self, without: Collection[str] = ()) -> tuple[list[str], list[str]]:
        """Of the line the text of each stage, and the marks of the whole network."""
        common = _common(self.stages)
        stages = [
            " ".join((head, *_kept(marks, {*without, *common})))
            for head, marks in zip(self.heads, self.stages, strict=True)
        ]
        first = {name: self.whole[name] for name in _FIRST if name in self.whole}
        marks = first | common | self.whole
        return stages, _kept(marks, without)


@lru_cache(maxsize=4096)
def _line_of(config: Network) -> _Line:
    """A report tells the same network in tables, in plots and in the page."""
    return _Line(config)


def _kept(marks: Mapping[str, str], without: Collection[str]) -> list[str]:
    return [mark for address, mark in marks.items() if mark and address not in without]


def _head(stage: StageConfig, given: StageConfig) -> str:
    """The stage's structure; a mixer has the name that was given, not the path it stands for."""
    mixer = stage.token_mixer
    named = given.token_mixer if isinstance(given.token_mixer, str) else mixer
    name = short_name(str(named)) if isinstance(mixer, str) else f"({mixer})"
    text = f"{stage.depth}x {name} {stage.embed_dim}"
    if stage.heads:
        text += f" h{stage.heads}"
        if stage.attn_width != stage.embed_dim:
            text += f"x{stage.attn_width // stage.heads}"
    if stage.num_windows > 1:
        text += f" w{stage.windows}"
    if stage.groups != (1,):
        text += " " + format_schedule([stage.groups])
    if stage.is_external and stage.depth > 1:
        text += " external"
    if stage.has_nll:
        text += f" nll {stage.nll_ratio:g}"
    return text


def _common(stages: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The marks that all stages have that read the field, if these are two or more."""
    common = {}
    for name in dict.fromkeys(name for marks in stages for name in marks):
        found = [marks[name] for marks in stages if name in marks]
        if len(found) > 1 and len({*found}) == 1 and found[0]:
            common[name] = found[0]
    return common


def _stage_marks(stage: StageConfig, network: Network) -> Iterator[tuple[str, str]]:
    for name, field in StageConfig.model_fields.items():
        rule = STAGE_RULES.get(name, FieldRule())
        if name not in _IN_HEAD and rule.matters(stage):
            value = getattr(stage, name)
            usual = rule.meaning(stage, field.get_default(), network)
            same = rule.meaning(stage, value, network) == usual
            yield f"stages.{name}", "" if same else _mark(name, value)


def _network_marks(network: Network) -> Iterator[tuple[str, str]]:
    for address, value, default in _fields(network):
        rule = NETWORK_RULES.get(address, FieldRule())
        if rule.matters(network):
            same = value == rule.meaning(network, default, network)
            yield address, "" if same else _mark(address, value)


def _fields(network: Network) -> Iterator[tuple[str, Any, Any]]:
    """Address, value and default of each field outside the stages."""
    for name, field in Network.model_fields.items():
        value, default = getattr(network, name), field.get_default()
        if isinstance(value, Frozen):
            for inner in type(value).model_fields:
                yield f"{name}.{inner}", getattr(value, inner), getattr(default, inner)
        elif name not in _OF_IMAGES:
            yield name, value, default


def _mark(address: str, value: Any) -> str:
    word = _WORDS.get(address, address)
    if isinstance(value, bool):
        return word if value else f"no {word}"
    if isinstance(value, tuple):
        return f"{word} [{','.join(map(str, value))}]"
    return f"{word} {value:g}" if isinstance(value, float) else f"{word} {value}"
