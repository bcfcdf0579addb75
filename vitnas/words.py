"""Words that depend on a number."""

from __future__ import annotations


def plural(number: int, noun: str) -> str:
    """`1 trial`, `2 trials`, `1,200 trials`, `2 classes`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        noun = noun[:-1] + "ie"
    ending = noun + ("es" if noun.endswith("ss") else "s")
    return f"{number:,} {ending}"
