"""The token mixers of a stage: one, or several and which of its blocks has which."""

from __future__ import annotations

from itertools import cycle, islice
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from vitnas.config.findings import RuleError
from vitnas.config.mixers import MIXERS, MixerName, short_name
from vitnas.config.parts import Frozen, NotSettled, Positive, as_tuple
from vitnas.plugins import PATH


class MixerPattern(Frozen):
    """`pattern` repeats over the blocks; the last `blocks` of them have the mixer `last`.

    `{pattern: [dwconv, mhsa]}` alternates. `{pattern: [dwconv], last: ska, blocks: 2}` is a stage
    of `dwconv` with `ska` in its last two blocks. Every mixer that is named has a block.
    """

    pattern: Annotated[
        tuple[MixerName, ...], Field(min_length=1, max_length=100), BeforeValidator(as_tuple)
    ] = Field(description="mixers that take turns from block to block, the first one first")
    last: MixerName | None = Field(
        None, description="another mixer, in the stage's last blocks; null: the pattern's"
    )
    blocks: Positive = Field(1, description="how many of the last blocks have the mixer `last`")

    @property
    def names(self) -> tuple[str, ...]:
        """All its mixers.

        Raises:
            NotSettled: one of them is not known yet.
        """
        return settled(self.pattern if self.last is None else (*self.pattern, self.last))

    @property
    def tail(self) -> int:
        """How many blocks at the end do not follow the pattern."""
        return 0 if self.last is None else self.blocks

    def of_blocks(self, depth: int) -> tuple[str, ...]:
        """The mixer of each of `depth` blocks.

        Raises:
            NotSettled: one of them is not known yet.
        """
        taken = islice(cycle(self.pattern), depth - self.tail)
        return settled((*taken, *[str(self.last)] * self.tail))

    def problem(self, depth: int, tail: int | None = None) -> tuple[str, str, Any, Any] | None:
        """What does not fit into `depth` blocks: rule, field, value, nearest value.

        Args:
            depth: the stage's.
            tail: how many blocks at the end do not follow the pattern; None: as it says itself.
        """
        tail = self.tail if tail is None else tail
        left, length = depth - tail, len(self.pattern)
        if length <= left:
            return None
        has = f"a stage of depth {depth}"
        if length > depth:
            rule = f"{length} mixers are longer than {has}"
            return rule, "pattern", list(self.pattern), list(self.pattern[:depth])
        rule = f"{has} has no room for so many last blocks beside {length} of the pattern"
        return rule, "blocks", tail, depth - length or "last: null"

    def __str__(self) -> str:
        text = "+".join(map(short_name, self.pattern))
        return f"{text}, last {self.tail} {short_name(str(self.last))}" if self.tail else text

    @model_validator(mode="after")
    def _last_is_another(self) -> MixerPattern:
        if "blocks" in self.model_fields_set and "last" not in self.model_fields_set:
            raise RuleError("is required beside blocks", "last")
        if self.last in self.pattern:
            raise RuleError("is in the pattern already; write out the pattern", "last", self.last)
        return self


_MIXER_SCHEMA = {
    "anyOf": [
        {"enum": list(MIXERS)},
        {"type": "string", "pattern": PATH, "description": "Another package's: module:Class."},
        {
            "type": "object",
            "required": ["mixer"],
            "description": "With options: {mixer: NAME}.",
        },
        MixerPattern.model_json_schema(),
    ]
}
TokenMixer = Annotated[
    Annotated[MixerName, Tag("str")] | Annotated[MixerPattern, Tag("[pattern]")],
    Discriminator(lambda value: "[pattern]" if isinstance(value, (dict, MixerPattern)) else "str"),
    WithJsonSchema(_MIXER_SCHEMA),
]


def settled(names: tuple[str, ...]) -> tuple[str, ...]:
    """`names`, if all are known: a place that a space leaves open is None."""
    if not all(names):
        raise NotSettled("pattern")
    return names


def shortest_pattern(mixers: tuple[str, ...]) -> str | MixerPattern:
    """The one spelling of these mixers of a stage's blocks."""
    first, last = mixers[0], mixers[-1]
    head, tail = mixers.count(first), mixers.count(last)
    if first == last and head == len(mixers):
        return first
    if mixers == (first,) * head + (last,) * tail:
        return MixerPattern(pattern=(first,), last=last, blocks=tail)
    found = (MixerPattern(pattern=mixers[:end]) for end in range(2, len(mixers) + 1))
    return next(pattern for pattern in found if pattern.of_blocks(len(mixers)) == mixers)
