"""Rules over several fields."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.config.rules import (
    class_token_fits,
    default_tokens_dim,
    divisors,
    groups_fit,
    heads_of,
    heads_problem,
    nearest_divisor,
    reattention_limit,
    schedule_of,
)

numbers = st.integers(1, 400)


@given(numbers, numbers)
def test_the_nearest_divisor_divides_and_none_is_nearer(number: int, wanted: int) -> None:
    found = nearest_divisor(number, wanted)
    assert number % found == 0
    assert all(abs(found - wanted) <= abs(other - wanted) for other in divisors(number))


@given(numbers, st.none() | numbers, st.none() | numbers)
def test_heads_without_a_problem_fill_the_width(
    width: int, heads: int | None, dim: int | None
) -> None:
    problem = heads_problem(width, heads, dim)
    if problem is None:
        assert width % heads_of(width, heads, dim) == 0
        return
    field, nearest = problem[1], problem[3]
    mended = {"num_heads": heads, "head_dim": dim} | {field: nearest}
    again = heads_problem(width, mended["num_heads"], mended["head_dim"])
    assert again is None or again[1] != field, "the value that it names is one that would do"


@pytest.mark.parametrize(
    ("mixer", "tokens", "groups", "problem"),
    [
        ("mhsa", 16, (4, 2, 1), None),
        ("mhsa", 16, (1, 3), "16 tokens cannot be split into 3 equal groups"),
        ("ska", 16, (1, 1), None),
        ("ska", 16, (1, 2), r"ska is bound to .*\(pass 2 has g = 2\)"),
    ],
)
def test_groups(mixer: str, tokens: int, groups: tuple[int, ...], problem: str | None) -> None:
    assert re.search(problem or "^None$", str(groups_fit([mixer], tokens, groups)))


@pytest.mark.parametrize(("passes", "expected"), [(None, (8, 2)), (1, (8,)), (3, (8, 2, 8))])
def test_a_schedule_has_a_number_for_each_pass(
    passes: int | None, expected: tuple[int, ...]
) -> None:
    assert schedule_of((8, 2), passes) == expected


def test_a_class_token_has_no_place_in_a_grid() -> None:
    assert class_token_fits(["cska"]) is None
    assert class_token_fits(["cska", "dwconv"]) == "dwconv reads a grid of tokens: no class token"


def test_reattention_reaches_back_to_the_first_split_pass() -> None:
    assert reattention_limit([(2, (1,)), (0, (2,)), (3, (1,))]) == 5
    assert reattention_limit([(2, (1,)), (1, (2, 1)), (3, (1,))]) == 3
    assert reattention_limit([(0, (1,))]) == 0


def test_the_tokens_dim_of_a_narrow_stage_is_one() -> None:
    assert [default_tokens_dim(width) for width in (1, 2, 64)] == [1, 1, 32]
