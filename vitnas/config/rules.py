"""Rules across fields, as pure functions on plain values.

A model file and a space use the same functions: the model refuses what breaks a rule, the space
offers only what keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from vitnas.config.mixers import facts_of, mixer_named

DEFAULT_HEAD_DIM = 32


def default_tokens_dim(embed_dim: int) -> int:
    """Hidden tokens of the `mlp` mixer where `tokens_dim` is null."""
    return max(1, embed_dim // 2)


def squeezed_channels(embed_dim: int, se_ratio: float) -> int:
    """Channels inside squeeze-excitation: one at least; 0 without it."""
    return max(1, int(se_ratio * embed_dim)) if se_ratio else 0


def heads_of(width: int, num_heads: int | None, head_dim: int | None) -> int:
    """Heads of an attention of `width` channels; 32 channels each where neither is given."""
    return num_heads or width // (head_dim or DEFAULT_HEAD_DIM)


def heads_problem(
    embed_dim: int, num_heads: int | None, head_dim: int | None, attn_dim: int | None = None
) -> tuple[str, str, int, int] | None:
    """What is wrong with the heads of an attention mixer: rule, field, value, nearest value."""
    width = attn_dim or embed_dim
    total = f"attn_dim {attn_dim}" if attn_dim else f"embed_dim {embed_dim}"
    wide = f"attn_dim {num_heads * head_dim}" if num_heads and head_dim else ""
    if num_heads and width % num_heads:
        rule = f"must divide {total}" + (wide and f"; {num_heads} heads of {head_dim} are {wide}")
        return rule, "num_heads", num_heads, nearest_divisor(width, num_heads)
    dim = head_dim or DEFAULT_HEAD_DIM
    if not num_heads and width % dim:
        return f"must divide {total}", "head_dim", dim, nearest_divisor(width, dim)
    if num_heads and head_dim and num_heads * head_dim != width:
        rule = f"{num_heads} heads of {head_dim} are not {total}; give one of both, or {wide}"
        return rule, "head_dim", head_dim, width // num_heads
    return None


def halvings_of(stride: int) -> int:
    """How often a stem of this stride, a power of two, halves the grid."""
    return stride.bit_length() - 1


def halved(width: int) -> int:
    """Filters that give so many channels by CReLU."""
    return (width + 1) // 2


def pools_fit(pools: int, stride: int) -> str | None:
    """Why a stem cannot halve the grid so often by pooling, or None."""
    halvings = halvings_of(stride)
    times = "once" if halvings == 1 else f"{halvings} times"
    return None if pools <= halvings else f"a conv stem of stride {stride} halves the grid {times}"


@lru_cache(maxsize=1024)  # a space asks for those of a width again for each number of heads
def divisors(number: int) -> tuple[int, ...]:
    return tuple(candidate for candidate in range(1, number + 1) if number % candidate == 0)


def nearest_divisor(number: int, wanted: int) -> int:
    """The divisor of `number` closest to `wanted`; the smaller of two equally close ones."""
    return min(divisors(number), key=lambda divisor: (abs(divisor - wanted), divisor))


def groups_fit(mixers: Sequence[str], num_tokens: int, groups: Sequence[int]) -> str | None:
    """Why the passes' `groups` are impossible for a stage of these mixers, or None.

    Beside a mixer that is sliced, one that cannot be is passed without groups.
    """
    for mixer in mixers if len(groups) > 1 else ():
        if mixer_named(mixer).facts.whole:
            return f"{mixer} is passed once: its batch norms keep the statistics of one pass"
    for count, number in enumerate(groups, start=1):
        if number == 1:
            continue
        if facts_of(mixers).groups == "refused":
            bound = next(m for m in mixers if mixer_named(m).facts.groups == "refused")
            return (
                f"{bound} is bound to token positions and cannot be sliced into "
                f"groups (pass {count} has g = {number})"
            )
        if num_tokens % number:
            return f"{num_tokens} tokens cannot be split into {number} equal groups"
    return None


def class_token_fits(mixers: Sequence[str], tokens: int = 1) -> str | None:
    """Why so many tokens before the grid are impossible beside these mixers, or None."""
    if tokens > 1 and "cska" in mixers:
        return "cska has a key for one token before the grid: no distillation token"
    reading = [mixer for mixer in mixers if mixer_named(mixer).facts.grid]
    return f"{reading[0]} reads a grid of tokens: no class token" if reading else None


def flatten_fits(pool: str | None, head: str) -> str | None:
    """Why no such head sees every place, or None."""
    return "needs head.kind: linear" if pool == "flatten" and head != "linear" else None


def distillation_token_fits(mixers: Sequence[str], pool: str) -> str | None:
    """Why a distillation token is impossible beside a class token, or None."""
    if pool != "token":
        return "the classifiers of both tokens need global_pool: token"
    return class_token_fits(mixers, 2)


def windows_fit(windows: int, grid: tuple[int, int], class_token: bool) -> str | None:
    """Why a grid cannot be cut into so many windows along each side, or None."""
    if windows > 1 and class_token:
        return "a class token is in no window"
    if any(side % windows for side in grid):
        return "must divide both sides of the {}x{} grid".format(*grid)
    return None


def stride_fits(stride: int, groups: Sequence[int] = (1,), windows: int = 1) -> str | None:
    """Why keys of this stride are impossible beside these groups and windows, or None."""
    if stride > 1 and any(number > 1 for number in groups):
        return f"keys of stride {stride} cannot be sliced into groups"
    if stride > 1 and windows > 1:
        return f"keys of stride {stride} cannot be cut into windows"
    return None


def schedule_of(groups: Sequence[int], passes: int | None) -> tuple[int, ...]:
    """The groups of each pass: `groups` cut or repeated; as they are where `passes` is null."""
    count = len(groups) if passes is None else passes
    return tuple(groups[index % len(groups)] for index in range(count))


def reattention_limit(stages: Sequence[tuple[int, Sequence[int]]]) -> int:
    """How many of the last blocks with maps to mix can take re-attention.

    Args:
        stages: (number of blocks with maps to mix, groups) of each stage.

    Returns:
        The number of such blocks at the end of the network that all have g = 1 in every pass.
    """
    count = 0
    for blocks, groups in reversed(stages):
        if blocks and any(number != 1 for number in groups):
            break
        count += blocks
    return count
