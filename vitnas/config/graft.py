"""What can be grafted onto an existing network, and what a graft's file says; no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from vitnas.config.files import RuleError
from vitnas.config.model import BroadConfig, Frozen, ReattentionConfig
from vitnas.errors import ConfigError, nearest_name, shorten

_FORMS = "all, last:4, stages:2,3, 6-11 or 0,2,4-6"
_NOT_OURS = ("pretrained", "checkpoint_path", "cache_dir", "features_only", "scriptable")


def _as_text(value: Any) -> Any:
    """`6` and `[0, 2]`, as YAML reads them, are blocks, too."""
    if isinstance(value, (list, tuple)) and value:
        return ",".join(map(str, value))
    return str(value) if type(value) is int else value


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class GraftConfig(Frozen):
    """One graft onto an existing network; by default nothing is changed.

    Attributes:
        mixer: what the attention of `blocks` is replaced by; None = nothing is replaced.
        blocks: which blocks, counted through the network from 0: `all`, `last:4`, `stages:2,3`
            (stages count from 0, too), `6-11`, or a list like `0,2,4-6`.
        qk_scale, key_init: of the mixer, as in a model file.
        reattention_blocks: the last k of the blocks that keep their attention mix their maps.
        reattention: how; the network's own maps are mixed, `source: shared` is not possible.
        broad: broad attention over what the network then is.
    """

    mixer: Literal["ska", "cska"] | None = None
    blocks: Annotated[str, Field(max_length=200), BeforeValidator(_as_text)] = "all"
    qk_scale: bool = True
    key_init: Literal["trunc_normal", "randn"] = "trunc_normal"
    reattention_blocks: Annotated[int, Field(ge=0)] = 0
    reattention: ReattentionConfig = ReattentionConfig()
    broad: BroadConfig = BroadConfig()

    @model_validator(mode="after")
    def _parts_fit(self) -> GraftConfig:
        if self.mixer is None and self.blocks != "all":
            rule = "says where a mixer goes, and no mixer is given (ska or cska)"
            raise RuleError(rule, "blocks", self.blocks)
        if self.reattention.source == "shared":
            rule = "a network that is there keeps its own maps; sharing them is for model files"
            raise RuleError(rule, "reattention.source", "shared", "own")
        return self

    @property
    def changes(self) -> bool:
        """Whether this graft does anything at all."""
        return bool(self.mixer or self.reattention_blocks or self.broad.gamma)

    def to_tree(self) -> dict[str, Any]:
        """What differs from the defaults, as a plain tree."""
        return self.model_dump(mode="json", exclude_defaults=True)


class GraftFile(Frozen):
    """graft.yaml: from which network, with which options, which grafts one after the other.

    Attributes:
        model: a name of timm's, or of a network of SKA's Table 1.
        options: what it is built with beside its name, e.g. `{img_size: 32, num_classes: 10}`.
        grafts: in the order in which they were made.
    """

    model: str
    options: dict[str, Any] = Field(default={})
    grafts: Annotated[tuple[GraftConfig, ...], Field(min_length=1), BeforeValidator(_as_tuple)]

    @model_validator(mode="after")
    def _options_are_plain(self) -> GraftFile:
        for name, value in self.options.items():
            if name.startswith(_NOT_OURS):
                raise RuleError("is no option of a network's form", f"options.{name}", value)
            if not _is_plain(value):
                rule = "must be a number, text, true, false, or a list of them"
                raise RuleError(rule, f"options.{name}", value)
        return self


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def chosen_blocks(blocks: str, stages: Sequence[int]) -> tuple[int, ...]:
    """The indices that `blocks` means.

    Args:
        blocks: as in `GraftConfig`.
        stages: for each block of the network, the index of its stage.

    Raises:
        ConfigError: not one of the forms, or there is no such block or stage.
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
