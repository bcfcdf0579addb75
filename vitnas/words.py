"""Words that depend on a number."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`, `1,200 trials`."""
    if number == 1:
        return f"1 {noun}"
    ending = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {ending}"
