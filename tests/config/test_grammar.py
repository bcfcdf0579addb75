"""Searched values in a tree become axes at their places; all else stays as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.config.axes import Axis, Choice, FloatRange, IntRange
from vitnas.config.grammar import check_ties, parse_tree
from vitnas.errors import ConfigError

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "stages"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@pytest.mark.slow
@given(PLAIN)
def test_a_tree_without_axes_stays_as_it_is(tree: Any) -> None:
    assert parse_tree(tree) == tree


@given(st.integers(-50, 50), st.integers(0, 60), st.integers(1, 9))
def test_a_range_ends_at_a_whole_number_of_steps(low: int, width: int, step: int) -> None:
    axis = parse_tree({"int": [low, low + width], "step": step})
    assert isinstance(axis, IntRange)
    assert (axis.low, axis.step) == (low, step)
    assert (axis.high - low) % step == 0
    assert low + width - step < axis.high <= low + width


def test_axes_know_their_path_and_their_name() -> None:
    tree = {"stages": [{"depth": {"int": [1, 3]}, "groups": [{"choice": [1, 2]}, 1]}]}
    stage = parse_tree(tree)["stages"][0]
    assert stage["depth"] == IntRange(("stages", 0, "depth"), "stages[0].depth", 1, 3, 1, False)
    first, second = stage["groups"]
    assert first == Choice(("stages", 0, "groups", 0), "stages[0].groups[0]", (1, 2), (1, 2))
    assert second == 1


def test_a_name_replaces_the_address_and_labels_replace_options() -> None:
    axis = parse_tree({"x": {"choice": [[1], {"a": 2}], "name": "tied", "labels": ["p", "q"]}})["x"]
    assert (axis.name, axis.labels, axis.options) == ("tied", ("p", "q"), ([1], {"a": 2}))
    plain = parse_tree({"x": {"choice": [[1], {"b": 1, "a": 2}, None, 0.5]}})["x"]
    assert plain.labels == ("[1]", '{"a": 2, "b": 1}', None, 0.5)


def test_axes_inside_an_option_have_its_number_in_their_names() -> None:
    tree = {"mixer": {"choice": ["mhsa", {"shift": {"step": {"int": [1, 3]}}}]}}
    inner = parse_tree(tree)["mixer"].options[1]["shift"]["step"]
    assert inner.name == "mixer#1/mixer.shift.step"
    assert inner.path == ("mixer", "shift", "step")


@pytest.mark.parametrize(
    ("value", "axis"),
    [
        ({"float": [0, 1]}, FloatRange((), "", 0.0, 1.0, None, False)),
        ({"float": [1e-4, 1e-1], "log": True}, FloatRange((), "", 1e-4, 1e-1, None, True)),
        ({"float": [0.0, 1.0], "step": 0.3}, FloatRange((), "", 0.0, 0.9, 0.3, False)),
        ({"float": [0.0, 0.3], "step": 0.1}, FloatRange((), "", 0.0, 0.3, 0.1, False)),
        ({"int": [1, 64], "log": True}, IntRange((), "", 1, 64, 1, True)),
    ],
)
def test_ranges(value: dict[str, Any], axis: Axis) -> None:
    assert parse_tree(value) == axis


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"choise": [1, 2]}, r"x\.choise: unknown key \(nearest: choice\)"),
        ({"choice": []}, r"x\.choice = \[\]: a choice needs a list with one entry or more"),
        ({"choice": [1, 1.0]}, r"x\.choice\[1\] = 1\.0: stands twice"),
        (
            {"choice": list(range(8, 9608, 8))},
            r"x\.choice = \[8, 16, .*: has 1,200 entries; 1,000 are the most "
            r"\(nearest: \{int: \[8, 9600\], step: 8\}\)",
        ),
        (
            {"choice": list(range(1001))},
            r": has 1,001 entries; .* \(nearest: \{int: \[0, 1000\]\}\)",
        ),
        ({"choice": [f"m{n}" for n in range(1001)]}, r": has 1,001 entries; 1,000 are the most$"),
        ({"choice": [1, 2], "labels": ["a"]}, r"x\.labels = .*labels are 2 texts"),
        ({"choice": [1], "step": 1}, r"x\.step = 1: beside choice there may be labels, name"),
        ({"int": [1, 2], "lg": True}, r"x\.lg = true: .*\(nearest: log\)"),
        ({"int": [1, 2], "name": 3}, r"x\.name = 3: must be text"),
        ({"int": [3, 1]}, r"x\.int = \[3, 1\]: an empty range.*\(nearest: \[1, 3\]\)"),
        ({"int": [1, 2.5]}, r"x\.int = .*two whole numbers"),
        ({"int": [True, 2]}, r"x\.int = .*two whole numbers"),
        ({"int": [1, 2**60]}, r"x\.int = .*two whole numbers"),
        ({"float": [0, float("inf")]}, r"x\.float = .*two finite numbers"),
        ({"float": ["1e-3", 1]}, r"x\.float\[0\] = '1e-3': YAML reads this as text"),
        ({"int": [1, 9], "step": 0}, r"x\.step = 0: must be above 0"),
        ({"int": [0, 9], "log": True}, r"x\.log = true: a log range starts above 0"),
        ({"int": [1, 9], "log": 1}, r"x\.log = 1: must be true or false"),
    ],
)
def test_a_mistake_has_its_address(value: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_tree({"x": value})


def test_the_rows_of_a_table_may_have_equal_values() -> None:
    rows = {"labels": ["plain", "deep", "wide"], "name": "row"}
    depth = parse_tree({"x": {"choice": [2, 4, 2], **rows}})["x"]
    width = parse_tree({"y": {"choice": [8, 8, 16], **rows}})["y"]
    check_ties([depth, width])
    assert (depth.options, width.options) == ((2, 4, 2), (8, 8, 16))
    with pytest.raises(ConfigError, match=r"x\.choice\[2\] = 2: stands twice"):
        parse_tree({"x": {"choice": [2, 4, 2], "labels": rows["labels"]}})
    with pytest.raises(ConfigError, match=r"x\.choice\[2\] = 2: stands twice"):
        parse_tree({"x": {"choice": [2, 4, 2], "name": "row"}})
    with pytest.raises(ConfigError, match=r"x\.labels\[1\] = 'a': stands twice"):
        parse_tree({"x": {"choice": [2, 4], "labels": ["a", "a"], "name": "row"}})


def test_axes_of_one_name_offer_the_same() -> None:
    one, same, other = (
        parse_tree({key: {"int": [1, high], "name": "tied"}})[key]
        for key, high in (("a", 3), ("b", 3), ("c", 4))
    )
    check_ties([one, same])
    with pytest.raises(ConfigError, match=r"c\.name = 'tied': must offer what a offers"):
        check_ties([one, same, other])
    choice = parse_tree({"d": {"choice": [1, 2, 3], "name": "tied"}})["d"]
    with pytest.raises(ConfigError, match=r"d\.name"):
        check_ties([one, choice])
