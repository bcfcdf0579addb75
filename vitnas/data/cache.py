"""The cache of decoded images: where the sets are, how large they are, what goes when it is full.

`$VITNAS_IMAGE_CACHE`, or `images/` in the user's cache folder, holds them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from vitnas.config.notation import parse_size
from vitnas.data.imageset import FACTS_FILE, ImageSet, SetFacts
from vitnas.environment import cache_home
from vitnas.errors import ConfigError, DataError, reason_of
from vitnas.files import read_bytes

FOLDER, LIMIT = "VITNAS_IMAGE_CACHE", "VITNAS_IMAGE_CACHE_LIMIT"
"""Environment variables: the folder of the sets (`off`: none), and how large all may be."""
_MOST_BYTES = 1 << 16


def home() -> Path | None:
    """The folder of the sets; None where there is none.

    Raises:
        DataError: `$VITNAS_IMAGE_CACHE` is no path from the root.
    """
    asked = os.environ.get(FOLDER, "")
    if asked == "off":
        return None
    if not asked:
        base = cache_home()
        return None if base is None else base / "images"
    if not Path(asked).is_absolute():
        raise DataError(f"${FOLDER} = '{asked}': must be off or a folder's path from the root on")
    return Path(asked)


def limit() -> int | None:
    """Bytes that all sets may take; None = what the disk has.

    Raises:
        DataError: `$VITNAS_IMAGE_CACHE_LIMIT` is no size.
    """
    asked = os.environ.get(LIMIT)
    try:
        return parse_size(asked, f"${LIMIT}") if asked else None
    except ConfigError as error:  # of the environment, not of a file that is read
        raise DataError(str(error)) from None


@dataclass(frozen=True)
class HeldSet:
    """A set that is there.

    Attributes:
        images: the set.
        size: bytes of its files.
        used: when it was last opened, in seconds since 1970.
    """

    images: ImageSet
    size: int
    used: float


def held_sets(home: Path | None) -> list[HeldSet]:
    """All sets in `home`, the one that was used last first."""
    found = [held for path in _folders(home) if (held := _held(path)) is not None]
    return sorted(found, key=lambda held: -held.used)


def make_room(home: Path, needed: int, own: ImageSet) -> None:
    """Delete sets that nobody uses until `needed` bytes more fit; those used last stay longest.

    Raises:
        DataError: they do not fit; or see `limit`.
    """
    bound = limit()
    while (short := _shortage(home, needed, bound)) is not None:
        others = [held for held in held_sets(home) if held.images.folder != own.folder]
        if not any(held.images.delete() for held in reversed(others)):
            raise DataError(
                f"{home}: {short}; take a smaller img_size or train_fraction, or set ${FOLDER} to "
                "a folder on a larger disk"
            )


def prune(home: Path | None, keep: int) -> tuple[list[HeldSet], list[HeldSet]]:
    """Delete sets, but of those that were used last so many that they take `keep` bytes at most.

    Returns:
        Those that are gone, and those that should be but are in use.
    """
    gone, used, left = list[HeldSet](), list[HeldSet](), keep
    for held in held_sets(home):
        left -= held.size
        if left < 0:
            (gone if held.images.delete() else used).append(held)
    return gone, used


def size_text(size: float) -> str:
    """`1.94 GB`, `20 kB`."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size / 1e3:.3g} kB"


@contextmanager
def plain_errors(home: Path) -> Iterator[None]:
    """What the system refuses in the folder of the sets, in one line."""
    try:
        yield
    except OSError as error:
        hint = f"set ${FOLDER} to another folder, or to off (images in memory)"
        raise DataError(f"{home}: cannot be written: {reason_of(error)}; {hint}") from None


def _shortage(home: Path, needed: int, bound: int | None) -> str | None:
    """What is too little; None where there is room."""
    there = next(path for path in (home, *home.parents) if path.is_dir())
    stat = os.statvfs(there)
    free = stat.f_bavail * stat.f_frsize
    text = f"decoded images take {size_text(needed)}"
    if needed > free:
        return f"{text} and {size_text(free)} are free"
    held = sum(held.size for held in held_sets(home))
    if bound is not None and held + needed > bound:
        kept = f" beside the {size_text(held)} that are there" if held > _MOST_BYTES else ""
        return f"{text}{kept}, more than ${LIMIT} = {size_text(bound)}"
    return None


def _folders(home: Path | None) -> list[Path]:
    try:
        return [] if home is None else [path for path in home.iterdir() if _is_set(path)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{home}: cannot be read: {reason_of(error)}") from None


def _is_set(path: Path) -> bool:
    return len(path.name) == 16 and (path / FACTS_FILE).is_file() and not path.is_symlink()


def _held(path: Path) -> HeldSet | None:
    """A set as it is; None where it has just gone or is none of ours."""
    try:
        facts = SetFacts.model_validate_json(read_bytes(path / FACTS_FILE, _MOST_BYTES))
        size = sum(entry.stat().st_size for entry in os.scandir(path))
        return HeldSet(ImageSet(path, facts), size, (path / FACTS_FILE).stat().st_mtime)
    except (OSError, ValidationError):
        return None
