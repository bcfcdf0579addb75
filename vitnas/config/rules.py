"""Rules that no single field can hold, as pure functions on plain values.

A model file and a space use the same functions: the model refuses what breaks a rule, the space
offers only what keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence

from vitnas.config.mixers import mixer_named


def divisors(number: int) -> list[int]:
    return [candidate for candidate in range(1, number + 1) if number % candidate == 0]


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` closest to `wanted`; the smaller of two equally close ones."""
    return min(divisors(number), key=lambda divisor: (abs(divisor - wanted), divisor))


def groups_fit(token_mixer: str, num_tokens: int, groups: Sequence[int]) -> str | None:
    """Why the passes' `groups` are impossible for this mixer on `num_tokens`, or None."""
    for passed, number in enumerate(groups):
        if number == 1:
            continue
        if mixer_named(token_mixer).facts.groups == "refused":
            return (
                f"{token_mixer} is bound to token positions and cannot be sliced into groups "
                f"(pass {passed + 1} has g = {number})"
            )
        if num_tokens % number:
            return f"{num_tokens} tokens cannot be split into {number} equal groups"
    return None


def reattention_limit(stages: Sequence[tuple[str, int, Sequence[int]]]) -> int:
    """How many of the last blocks with maps to mix can take re-attention.

    Args:
        stages: (token mixer, depth, groups) of each stage.

    Returns:
        The number of such blocks at the end of the network that all have g = 1 in every pass.
    """
    count = 0
    for token_mixer, depth, groups in reversed(stages):
        if not mixer_named(token_mixer).facts.reattention:
            continue
        if any(number != 1 for number in groups):
            break
        count += depth
    return count
