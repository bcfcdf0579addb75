"""The objects of a network as model.py makes them: stages, blocks, layers between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from vitnas.config.model import ModelConfig
from vitnas.config.parts import Pooling
from vitnas.config.stage import StageConfig
from vitnas.exported.source.layout import Call, Code, Listed, Repeat, call, calls
from vitnas.exported.source.mixers import (
    BlockIndex,
    Variant,
    gridded,
    has_later_norms,
    mixer_call,
    variant,
)
from vitnas.nn.mixers import Place


def stage_calls(config: ModelConfig) -> list[Call]:
    """The stages, from the first."""
    return [_stage(config, index) for index in range(len(config.stages))]


def _stage(config: ModelConfig, index: int) -> Call:
    stage = config.stages[index]
    before: dict[str, Any] = {}
    if index:
        before["downsample"] = downsample_call(config, index)
    if config.pos_embed == "conditional":
        made = {"dim": stage.embed_dim, **gridded(config, config.grids[index])}
        before["position"] = call("ConditionalPosition", made)
    blocks: dict[str, Any] = {"blocks": tuple(repeated(list(_blocks(config, index))))}
    if config.map_source is not None:
        return _stage_with_maps(config, index, before, blocks)
    if stage.is_external:
        return call("named", {**before, "blocks": _loop(config, stage, blocks)})
    return call("stage", {**blocks, **before})


def _loop(config: ModelConfig, stage: StageConfig, blocks: dict[str, Any]) -> Call:
    """The blocks of a stage that is passed several times as a whole."""
    after = {"nlls": Listed((_nlls(config, stage),))} if stage.has_nll else {}
    return call(variant("loop"), {**blocks, **after, "passes": stage.passes})


def _stage_with_maps(
    config: ModelConfig, index: int, before: dict[str, Any], blocks: dict[str, Any]
) -> Call:
    """A stage whose blocks get the maps of earlier ones."""
    stage, several = config.stages[index], len(config.stages) > 1
    if several and not index:
        before = {"downsample": Code("nn.Identity()"), **before}
    args = {**before, **blocks} | ({"passes": stage.passes} if stage.is_external else {})
    options = {"downsample": several, "position": "position" in args}
    return call(variant("stage", **options, external=stage.is_external), args)


def downsample_call(config: ModelConfig, index: int) -> Call:
    """The layer before stage `index`."""
    before, after = config.stages[index - 1].embed_dim, config.stages[index].embed_dim
    args: dict[str, Any] = {"before": before, "after": after}
    args |= gridded(config, config.grids[index - 1])
    if config.downsample == "mbconv":
        args["hidden"], args["squeezed"] = config.downsample_channels(index)
    return call(variant("downsample", kind=config.downsample), args)


def _blocks(config: ModelConfig, index: int) -> Iterator[Call]:
    stage = config.stages[index]
    if not stage.has_blocks:
        return
    first = sum(earlier.depth for earlier in config.stages[:index])
    mixed = zip(stage.mixers, config.has_reattention(index), strict=True)
    for number, (mixer, reattention) in enumerate(mixed, start=first):
        place = Place(config.only(index, mixer), index, number, reattention)
        is_last = number == first + stage.depth - 1
        made = _block(place)
        if stage.is_external and config.map_source is not None:
            made = _looped(place, made, is_last)
        elif stage.passes > 1 and not stage.is_external:
            made = _recursion(place, made)
        yield made


def _block(place: Place) -> Call:
    config, stage = place.config, place.stage_config
    if stage.facts.whole:
        return mixer_call(place)
    kind = config.norm_of(stage)
    passes = kind == "batchnorm" and has_later_norms(config)
    args: dict[str, Any] = {"dim": stage.embed_dim, "mixer": mixer_call(place)}
    args["residual"] = config.residual_of(stage)
    if stage.has_mlp:
        args["hidden"] = int(stage.mlp_ratio * stage.embed_dim)
    if passes:
        args["passes"] = stage.passes
    return call(variant("block", mlp=stage.has_mlp, norm=kind, passes=passes), args)


def _looped(place: Place, block: Call, is_last: bool) -> Call:
    """A block of a stage that is passed several times as a whole."""
    ends = is_last and place.stage_config.has_nll
    nlls = {"nlls": (_nlls(place.config, place.stage_config),)} if ends else {}
    return call("LoopedBlock", {"block": block, **nlls})


def _recursion(place: Place, block: Call) -> Call:
    config, stage = place.config, place.stage_config
    alike = [other for other in config.stages if other.passes > 1 and not other.is_external]
    nlls = {other.has_nll for other in alike}
    args: dict[str, Any] = {"block": block}
    if stage.has_nll:
        args["nlls"] = (_nlls(config, stage),)
    elif any(nlls):  # one class for all recursions
        args["nlls"] = (Repeat(call("nn.Identity", {}), "_", 0, stage.passes),)
    else:
        args["passes"] = stage.passes
    return call(variant("recursion", nlls=any(nlls), some=len(nlls) > 1), args)


def _nlls(config: ModelConfig, stage: StageConfig) -> Repeat:
    """The layers after the passes, one for each."""
    args = {
        "dim": stage.embed_dim,
        "residual": config.residual_of(stage),
        "hidden": int(stage.nll_ratio * stage.embed_dim),
    }
    return Repeat(call(variant("nll", norm=config.norm_of(stage)), args), "_", 0, stage.passes)


def steps_of(config: ModelConfig) -> dict[str, bool]:
    """What must know which pass it is: token mixers, blocks, what is around blocks in a loop.

    `loop_nlls` is whether non-linear layers follow the passes of such loops.
    """
    later = has_later_norms(config)
    mixers = any(
        (later and stage.qkv_kernel) or any(number > 1 for number in stage.groups)
        for stage in config.stages
        if stage.passes > 1
    )
    looped = any(stage.is_external and stage.has_nll for stage in config.stages)
    return {
        "loop_nlls": looped,
        "mixer_step": mixers,
        "block_step": mixers or later,
        "loop_step": mixers or later or looped,
    }


def stepped_of(stages: Sequence[Call]) -> set[Variant]:
    """The kinds of blocks and mixers that are told which pass it is: those inside of a loop."""
    inside = [
        made
        for outer in calls(stages)
        if _is_loop(outer.name)
        for made in calls([value for _, value in outer.args])
        if isinstance(made.name, Variant)
    ]
    blocks = {made.name for made in inside if made.name.part in ("block", "mbconv")}
    same = [made for made in calls(stages) if made.name in blocks]  # also those outside of a loop
    mixers = {made.name for made in calls(same) if isinstance(made.name, Variant)}
    slices = {made.name for made in calls(stages) if isinstance(made.name, Variant)}
    return blocks | mixers | {one for one in slices if dict(one.options).get("base") in mixers}


def _is_loop(name: Any) -> bool:
    """Whether it passes what is inside of it several times."""
    if not isinstance(name, Variant):
        return False
    is_stage = name.part == "stage" and bool(dict(name.options)["external"])
    return is_stage or name.part in ("recursion", "loop")


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


def pooling_text(kind: Pooling, dim: int | str) -> str:
    """The pooling of so many channels."""
    return f"MaxBlurPool({dim})" if kind == "max_blur" else "nn.MaxPool2d(2)"


def stem_layers(config: ModelConfig) -> list[Code]:
    """The layers of the stem's `conv`."""
    return [Code(text) for text in _STEMS[config.stem.kind](config)]


def _conv(config: ModelConfig) -> list[str]:
    before, found = config.in_chans, []
    for index, after in enumerate(config.stem.conv_widths(config.stages[0].embed_dim)):
        stride = config.stem.stride_of(index)
        count = config.stem.num_filters(after)
        where = f"{stride}, " if stride > 1 else ""
        found.append(f"nn.Conv2d({before}, {count}, 3, {where}padding=1)")
        halves = f"CReLU({after if crelu_cuts(config) else ''})"
        act = halves if config.stem.act == "crelu" else "nn.ReLU()"
        found += [f"nn.BatchNorm2d({count})", act]
        if config.stem.is_pooled(index):
            found.append(pooling_text(config.pooling, after))
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
