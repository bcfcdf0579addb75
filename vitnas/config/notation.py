"""SReT's bracket notation for group schedules, and numbers that people read.

`[8,2][4,1][1,1]` (SReT, Appendix C): one pair of brackets a stage, one number a pass, so the
number of numbers is the number of passes. Text and tuples convert into each other exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from vitnas.errors import ConfigError

Schedule = tuple[tuple[int, ...], ...]

_SCHEDULE = re.compile(r"(\[\s*[1-9]\d{0,8}(\s*,\s*[1-9]\d{0,8})*\s*\]\s*)+")
_BRACKET = re.compile(r"\[([^\]]*)\]")


@lru_cache(maxsize=1024)
def parse_schedule(text: str) -> Schedule:
    """`"[8,2][4,1][1,1]"` -> `((8, 2), (4, 1), (1, 1))`.

    Raises:
        ValueError: `text` is not a sequence of brackets of positive integers.
    """
    if not _SCHEDULE.fullmatch(text.strip()):
        raise ValueError("a group schedule is written like [8,2][4,1][1,1]: positive integers only")
    return tuple(
        tuple(int(number) for number in bracket.split(",")) for bracket in _BRACKET.findall(text)
    )


def format_schedule(schedule: Iterable[Iterable[int]]) -> str:
    """`((8, 2), (4, 1), (1, 1))` -> `"[8,2][4,1][1,1]"`."""
    return "".join("[" + ",".join(map(str, groups)) + "]" for groups in schedule)


def fit_schedule(schedule: Schedule, stages: int) -> str | None:
    """The bracket text for so many stages that is closest: cut, or its last bracket repeated."""
    longer = schedule + (schedule[-1],) * stages
    return format_schedule(longer[:stages]) or None


def human(number: float) -> str:
    """`1234567` -> `1.23 M`: three significant digits with k, M, G or T."""
    for factor, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * factor:
            scaled = number / factor
            digits = 2 if abs(scaled) < 9.995 else 1 if abs(scaled) < 99.95 else 0
            return f"{scaled:.{digits}f} {letter}"
    return f"{number:g}"


def parse_human(text: str) -> float:
    """`"1.5G"`, `"2 M"`, `"300k"`, `"5e6"` -> a number.

    Raises:
        ValueError: `text` is none of these.
    """
    factors = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
    stripped = text.strip().lower()
    factor = factors.get(stripped[-1:], 1.0)
    return float(stripped[:-1] if factor != 1.0 else stripped) * factor


def parse_size(text: str, address: str) -> int:
    """`"500MB"`, `"1.5 GB"`, `"2e9"` -> bytes; a kB is 1,000 of them.

    Args:
        text: what is read.
        address: where it stands, for the error.

    Raises:
        ConfigError: no size above zero.
    """
    try:
        size = parse_human(text.strip().lower().removesuffix("b"))
    except ValueError:
        size = 0.0
    if not 1 <= size < 1e18:
        raise ConfigError("a size is written like 500MB or 1.5GB", address=address, value=text)
    return int(size)
