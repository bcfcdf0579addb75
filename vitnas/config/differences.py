"""What differs between a stored space and the one that is searched now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vitnas.config.space import SpaceConfig
from vitnas.errors import join_address, shorten

DIGEST = "digest"
"""Of a fingerprint: what tells apart images that were all read, by their pixels or their files."""
LISTED = "listed"
"""Of a fingerprint: what tells images apart by what is known before one is read; the same whether
all of them are read or some."""
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
    before, now = _comparable(before, now)
    return list(differences(before, {name: now.get(name) for name in before}))


def are_same_images(
    one: Mapping[str, Any], other: Mapping[str, Any], *, tested: bool = True
) -> bool:
    """Whether two fingerprints of images are equal.

    Args:
        tested: whether test images count, where both tell them.
    """
    one, other = dict(one), dict(other)
    if not (tested and TESTED in one and TESTED in other):
        for fingerprint in (one, other):
            fingerprint.pop(TESTED, None)
    one, other = _comparable(one, other)
    return one == other


def by_pixels(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """A fingerprint without the list of the images where the pixels of all of them tell more."""
    is_whole = DIGEST in fingerprint
    return {name: x for name, x in fingerprint.items() if not (is_whole and name == LISTED)}


def mark_of(fingerprint: Mapping[str, Any]) -> str | None:
    """The hex digits that stand for the images in texts; None where nothing tells."""
    return fingerprint.get(DIGEST) or fingerprint.get(LISTED)


def _comparable(
    one: Mapping[str, Any], other: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Two fingerprints by what both tell: the pixels of all images, or else their list."""
    are_whole = DIGEST in one and DIGEST in other
    if not are_whole and LISTED in one and LISTED in other:
        return _by_list(one), _by_list(other)
    return by_pixels(one), by_pixels(other)


def _by_list(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """A fingerprint without what is only known once all images were read."""
    return {name: x for name, x in fingerprint.items() if name not in (DIGEST, "num_images")}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def with_defaults(space: Any) -> Any:
    """A stored space with the defaults of newer fields; unchanged if it is no space of this
    version."""
    try:
        return SpaceConfig.model_validate(space).model_dump(mode="json")
    except ValueError:
        return space
