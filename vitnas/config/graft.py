"""The fields of a graft. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from vitnas.config.findings import RuleError
from vitnas.config.mixers import MIXERS, StaticKeyName
from vitnas.config.parts import (
    BroadConfig,
    Frozen,
    Kernel,
    MapActivation,
    Positive,
    ReattentionConfig,
    TemperatureConfig,
)
from vitnas.errors import ConfigError, nearest_name, shorten

_STATIC_KEYS = " or ".join(get_args(StaticKeyName))
_OF_MIXERS = (
    *("num_heads", "key_kernel", "attn_act", "mask_diagonal", "temperature", "windows"),
    "class_row",
)
_FORMS = "all, last:4, stages:2,3, 6-11 or 0,2,4-6"


def _as_text(value: Any) -> Any:
    """YAML reads `6` as a number and `[0, 2]` as a list; both are accepted as blocks."""
    if isinstance(value, (list, tuple)) and value:
        return ",".join(map(str, value))
    return str(value) if type(value) is int else value


class GraftConfig(Frozen):
    """One graft onto an existing network; by default nothing is changed.

    Attributes:
        mixer: the mixer that replaces the attention of `blocks`; None = nothing is replaced.
        blocks: which blocks; they are numbered through the network from 0: `all`, `last:4`,
            `stages:2,3` (stages are numbered from 0, too), `6-11`, or a list like `0,2,4-6`.
        num_heads: heads of the mixer, each as wide as those before; None = as many as before. Of
            fewer heads the first ones are kept; more heads are new.
        qk_scale, key_init, key_kernel, attn_act, mask_diagonal, windows: of the mixer, as in a
            model file.
        class_row: where the map of `cska` has the class token's row. `last` is SKA's code: the
            values have the class token first, so each token gets the mixture of the next one.
        temperature: of the mixer; `learnable` as in a model file. A graft knows no `linear`.
        reattention_blocks: number k; among the blocks that keep their attention, the last k mix
            their maps.
        reattention: how they mix. Each block mixes its own maps: `source: shared` is an error.
        broad: broad attention over the network with these changes.
    """

    mixer: StaticKeyName | None = None
    blocks: Annotated[str, Field(max_length=200), BeforeValidator(_as_text)] = "all"
    num_heads: Positive | None = None
    qk_scale: bool = True
    key_init: Literal["trunc_normal", "randn"] = "trunc_normal"
    key_kernel: Kernel = 3
    class_row: Literal["first", "last"] = "first"
    attn_act: MapActivation = "softmax"
    mask_diagonal: bool = False
    windows: Positive = 1
    temperature: TemperatureConfig = TemperatureConfig()
    reattention_blocks: Annotated[int, Field(ge=0)] = 0
    reattention: ReattentionConfig = ReattentionConfig()
    broad: BroadConfig = BroadConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> GraftConfig:
        if self.mixer is None and self.blocks != "all":
            rule = f"is only for a mixer ({_STATIC_KEYS}), and no mixer is given"
            raise RuleError(rule, "blocks", self.blocks)
        if self.reattention.source == "shared":
            rule = "a graft mixes each block's own maps; only a model file can share maps"
            raise RuleError(rule, "reattention.source", "shared", "own")
        if self.temperature.kind == "linear":
            rule = "a graft sees no first and last attention; only a model file has linear"
            raise RuleError(rule, "temperature.kind", "linear", "learnable")
        return self

    @model_validator(mode="after")
    def _mixer_reads(self) -> GraftConfig:
        """`qk_scale` and `key_init` without a mixer have always been accepted."""
        read = MIXERS[self.mixer].facts.fields if self.mixer else ()
        always = ["num_heads", "temperature"] if self.mixer else []
        always += ["class_row"] if self.mixer == "cska" else []
        default = GraftConfig.model_fields
        for field in {*_OF_MIXERS} - {*read, *always}:
            if getattr(self, field) == default[field].default:
                continue
            given = f"{self.mixer} does not read it" if self.mixer else "no mixer is given"
            raise RuleError(f"is of a mixer ({_STATIC_KEYS}), and {given}", field)
        return self

    @property
    def changes(self) -> bool:
        """Whether this graft does anything at all."""
        return bool(self.mixer or self.reattention_blocks or self.broad.gamma)

    def line(self) -> str:
        """What it does, in a few words: `cska in last:4, re-attention 2, gamma 0.4`."""
        parts = [f"{self.mixer} in {self.blocks}"] if self.mixer else []
        parts += [f"re-attention {self.reattention_blocks}"] if self.reattention_blocks else []
        parts += [f"gamma {self.broad.gamma:g}"] if self.broad.gamma else []
        return ", ".join(parts) or "nothing"

    def to_tree(self) -> dict[str, Any]:
        """The fields that differ from the defaults, as a plain tree."""
        return self.model_dump(mode="json", exclude_defaults=True)


def chosen_blocks(blocks: str, stages: Sequence[int]) -> tuple[int, ...]:
    """The block indices that `blocks` describes.

    Args:
        blocks: as in `GraftConfig`.
        stages: for each block of the network, the index of its stage.

    Raises:
        ConfigError: `blocks` has none of the forms, or the network has no such block or stage.
    """
    kind, colon, rest = blocks.replace(" ", "").partition(":")
    depth = len(stages)
    if kind == "all" and not colon:
        return tuple(range(depth))
    if kind == "last" and rest.isdecimal():
        count = int(rest)
        if not 1 <= count <= depth:
            raise _error(f"the network has {depth} blocks", blocks, f"last:{depth}")
        return tuple(range(depth - count, depth))
    if kind in ("stage", "stages") and colon:
        wanted = _numbers(rest, blocks, "stage", stages[-1] + 1)
        return tuple(index for index, stage in enumerate(stages) if stage in wanted)
    if colon:
        near = nearest_name(kind, ("last", "stages"))
        raise _error(f"is not one of {_FORMS}", blocks, near and f"{near}:{rest}")
    return tuple(sorted(_numbers(kind, blocks, "block", depth)))


def _numbers(text: str, blocks: str, what: str, end: int) -> set[int]:
    """`0,2,4-6` -> {0, 2, 4, 5, 6}, all of them below `end`."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise _error(f"is not one of {_FORMS}", blocks, None)
        start, stop = int(first), int(last or first)
        if start > stop or stop >= end:
            span = f"0-{end - 1}" if end > 1 else "0"
            rule = f"there is no {what} {shorten(part)}: the network's {what}s are {span}"
            raise _error(rule, blocks, f"{'stages:' if what == 'stage' else ''}{span}")
        found.update(range(start, stop + 1))
    return found


def _error(rule: str, blocks: str, nearest: str | None) -> ConfigError:
    return ConfigError(rule, address="blocks", value=blocks, nearest=nearest)
