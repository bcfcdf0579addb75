"""The objects of a network as model.py makes them: stages, blocks, layers between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from vitnas.config.model import ModelConfig
from vitnas.exported.source.layout import Call, Code, Repeat, call
from vitnas.exported.source.mixers import (
    BlockIndex,
    has_later_norms,
    mixer_call,
    variant,
)
from vitnas.nn.mixers import Place


def stage_calls(config: ModelConfig) -> list[Call]:
    """The stages, from the first."""
    return [_stage(config, index) for index in range(len(config.stages))]


def _stage(config: ModelConfig, index: int) -> Call:
    stage, several = config.stages[index], len(config.stages) > 1
    args: dict[str, Any] = {}
    is_plain = not stage.is_external and config.map_source is None
    if several and (index or not is_plain):
        args["downsample"] = downsample_call(config, index) if index else Code("nn.Identity()")
    if config.pos_embed == "conditional":
        made = {"dim": stage.embed_dim, "grid": config.grids[index]}
        args["position"] = call("ConditionalPosition", made)
    args["blocks"] = tuple(repeated(list(_blocks(config, index))))
    if is_plain:
        return call("stage", {"blocks": args.pop("blocks"), **args})
    if stage.is_external:
        args["passes"] = stage.passes
    doc = "Blocks at one resolution."
    if stage.is_external:
        doc = "Blocks at one resolution, all of them several times."
    elif several:
        doc = "Blocks at one resolution, after the layer that leads to it."
    options = {"downsample": several, "position": "position" in args}
    return call(variant("stage", **options, external=stage.is_external, doc=doc), args)


def downsample_call(config: ModelConfig, index: int) -> Call:
    """The layer before stage `index`."""
    before, after = config.stages[index - 1].embed_dim, config.stages[index].embed_dim
    args: dict[str, Any] = {"before": before, "after": after, "grid": config.grids[index - 1]}
    hidden, squeezed = config.downsample_channels(index)
    if config.downsample == "mbconv":
        args["hidden"] = hidden
        if squeezed:
            args["squeezed"] = squeezed
    options = {"kind": config.downsample, "squeezes": bool(squeezed)}
    return call(variant("downsample", **options), args)


def _blocks(config: ModelConfig, index: int) -> Iterator[Call]:
    stage = config.stages[index]
    first = sum(earlier.depth for earlier in config.stages[:index])
    mixed = zip(stage.mixers, config.has_reattention(index), strict=True)
    for number, (mixer, reattention) in enumerate(mixed, start=first):
        place = Place(config.only(index, mixer), index, number, reattention)
        is_last = number == first + stage.depth - 1
        made = _block(place)
        yield made if stage.passes == 1 else _recursion(place, made, is_last)


def _block(place: Place) -> Call:
    config, stage = place.config, place.stage_config
    if stage.facts.whole:
        return mixer_call(place)
    kind = config.norm_of(stage)
    options = {
        "mlp": stage.has_mlp,
        "norm": kind,
        "residual": config.residual_of(stage),
        "passes": kind == "batchnorm" and has_later_norms(config),
    }
    args: dict[str, Any] = {"dim": stage.embed_dim, "mixer": mixer_call(place)}
    if stage.has_mlp:
        args["hidden"] = int(stage.mlp_ratio * stage.embed_dim)
    if options["passes"] and stage.passes > 1:
        args["passes"] = stage.passes
    return call(variant("block", **options), args)


def _recursion(place: Place, block: Call, is_last: bool) -> Call:
    config, stage = place.config, place.stage_config
    has_nll = stage.has_nll and (is_last or not stage.is_external)
    args: dict[str, Any] = {"block": block}
    if has_nll:
        options = {"norm": config.norm_of(stage), "residual": config.residual_of(stage)}
        made = {"dim": stage.embed_dim, "hidden": int(stage.nll_ratio * stage.embed_dim)}
        args["nlls"] = (call(variant("nll", **options), made),) * stage.passes
    elif not stage.is_external and any(s.has_nll and not s.is_external for s in config.stages):
        args["nlls"] = (Code("nn.Identity()"),) * stage.passes  # one class for all recursions
    elif not stage.is_external:
        args["passes"] = stage.passes
    return call(variant("recursion", external=stage.is_external, nlls="nlls" in args), args)


def has_steps(config: ModelConfig) -> bool:
    """Whether blocks must know which pass it is."""
    sliced = any(number > 1 for stage in config.stages for number in stage.groups)
    external = any(stage.is_external for stage in config.stages)
    return sliced or external or has_later_norms(config)


def repeated(blocks: Sequence[Call]) -> Iterator[Call | Repeat]:
    """The blocks, where runs of equal ones are one `Repeat`."""
    for _, run in groupby(blocks, key=lambda block: _with_index(block, Code("index"))):
        found = list(run)
        first = next(_indices(found[0]), None)
        if len(found) == 1:
            yield _with_index(found[0], None)
        elif first is None:
            yield Repeat(found[0], "_", 0, len(found))
        else:
            item = _with_index(found[0], Code("index"))
            yield Repeat(item, "index", first, first + len(found))


def _indices(made: Any) -> Iterator[int]:
    if isinstance(made, BlockIndex):
        yield int(made)
    elif isinstance(made, Call):
        for _, value in made.args:
            yield from _indices(value)


def _with_index(made: Any, name: Code | None) -> Any:
    """The object with `name` in place of the block's index, or with a plain number."""
    if isinstance(made, BlockIndex):
        return int(made) if name is None else name
    if isinstance(made, Call):
        return Call(made.name, tuple((key, _with_index(value, name)) for key, value in made.args))
    return made


def crelu_cuts(config: ModelConfig) -> bool:
    """Whether some CReLU gives an odd number of channels, so that it has one too many."""
    widths = config.stem.conv_widths(config.stages[0].embed_dim)
    return any(width % 2 for width in (*widths, *(stage.embed_dim for stage in config.stages)))


def stem_layers(config: ModelConfig) -> list[Code]:
    """The layers of the stem's `conv`."""
    return [Code(text) for text in _STEMS[config.stem.kind](config)]


def _conv(config: ModelConfig) -> list[str]:
    before, found = config.in_chans, []
    for index, after in enumerate(config.stem.conv_widths(config.stages[0].embed_dim)):
        stride = config.stem.stride_of(index)
        count = config.stem.num_filters(after)
        found.append(f"nn.Conv2d({before}, {count}, 3, {stride}, padding=1)")
        halves = f"CReLU({after if crelu_cuts(config) else ''})"
        act = halves if config.stem.act == "crelu" else "nn.ReLU()"
        found += [f"nn.BatchNorm2d({count})", act]
        if config.stem.is_pooled(index):
            found.append("nn.MaxPool2d(2)")
        before = after
    return found


def _patch(config: ModelConfig) -> list[str]:
    stride = config.stem.stride
    return [f"nn.Conv2d({config.in_chans}, {config.stages[0].embed_dim}, {stride}, {stride})"]


def _metaformer(config: ModelConfig) -> list[str]:
    side, dim = config.stem.stride, config.stages[0].embed_dim
    where = f"{2 * side - 1}, {side}, padding={side // 2}"
    conv = f"nn.Conv2d({config.in_chans}, {dim}, {where})"
    if config.norm != "batchnorm":
        return [conv]
    eps = str(config.norm_eps).replace("e-0", "e-")
    return [conv, f"nn.BatchNorm2d({dim}, eps={eps})"]


def _deepvit(config: ModelConfig) -> list[str]:
    width, side = config.stem.width, config.stem.stride // 2
    norm = [f"nn.BatchNorm2d({width})", "nn.ReLU()"]
    return [
        f"nn.Conv2d({config.in_chans}, {width}, 7, 2, padding=3, bias=False)",
        *norm,
        f"nn.Conv2d({width}, {width}, 3, padding=1, bias=False)",
        *norm,
        f"nn.Conv2d({width}, {config.stages[0].embed_dim}, {side}, {side})",
    ]


def _bvit(config: ModelConfig) -> list[str]:
    chans, side = config.in_chans, config.stem.stride // 2
    return [
        f"nn.Conv2d({chans}, {chans}, 7, 2, padding=3)",
        f"nn.Conv2d({chans}, {config.stages[0].embed_dim}, {side}, {side})",
    ]


_STEMS: dict[str, Callable[[ModelConfig], list[str]]] = {
    "conv": _conv,
    "patch": _patch,
    "metaformer": _metaformer,
    "deepvit": _deepvit,
    "bvit": _bvit,
    "shifted": lambda config: ["Shifts()", f"nn.PixelUnshuffle({config.stem.stride})"],
}
