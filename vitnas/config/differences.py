"""What differs between a stored space and the one that is searched now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vitnas.config.space import SpaceConfig
from vitnas.errors import join_address, shorten

SCORING, TESTED = "scoring", "test"
"""Of a fingerprint: what tells images that score apart, where these are none of training, and test
images."""


def differences(old: Any, new: Any, address: str = "") -> Iterator[str]:
    """`model.stages[0].depth: 2 -> 3` for every leaf that differs; the name may."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=str):
            if not (address == "" and key in ("name", "description")):
                here = join_address(address, str(key))
                yield from differences(old.get(key), new.get(key), here)
    elif _is_list(old) and _is_list(new) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, join_address(address, index))
    elif old != new:
        yield f"{address}: {shorten(old)} -> {shorten(new)}" if address else f"{old} -> {new}"


def changed_images(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Where two fingerprints of images differ; older ones tell less."""
    return list(differences(before, {name: now.get(name) for name in before}))


def same_images(one: Mapping[str, Any], other: Mapping[str, Any], *, tested: bool) -> bool:
    """Whether two fingerprints agree in all that both tell.

    Args:
        tested: whether test images count, too.
    """
    both = one.keys() & other.keys() - (set() if tested else {TESTED})
    return all(one[name] == other[name] for name in both)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def with_defaults(space: Any) -> Any:
    """A stored space with the defaults of newer fields; unchanged if it is no space of this
    version."""
    try:
        return SpaceConfig.model_validate(space).model_dump(mode="json")
    except ValueError:
        return space
