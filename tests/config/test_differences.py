"""In what two spaces differ."""

from __future__ import annotations

import pytest

from vitnas.config.differences import (
    are_same_images,
    by_pixels,
    changed_images,
    differences,
    with_defaults,
)
from vitnas.config.space import load_space


def test_every_leaf_that_differs_has_its_address() -> None:
    old = {"name": "a", "model": {"stages": [{"depth": 2}, {"depth": 1}]}, "proxy": {"epochs": 3}}
    new = {"name": "b", "model": {"stages": [{"depth": 3}, {"depth": 1}]}, "data": {"root": "x"}}
    assert list(differences(old, new)) == [
        "data: null -> {root: 'x'}",
        "model.stages[0].depth: 2 -> 3",
        "proxy: {epochs: 3} -> null",
    ]
    assert list(differences(old, old)) == []


def test_lists_of_another_length_differ_as_a_whole() -> None:
    assert list(differences({"a": [1, 2]}, {"a": [1]})) == ["a: [1, 2] -> [1]"]


def test_fields_that_are_new_since_are_no_difference() -> None:
    tree = load_space("digits").to_tree()
    older = {name: value for name, value in tree.items() if name != "objectives"}
    assert list(differences(with_defaults(older), with_defaults(tree))) == []
    assert with_defaults({"no": "space"}) == {"no": "space"}


OLD = {"num_images": 9, "num_classes": 2, "digest": "a"}
WHOLE = OLD | {"listed": "b"}
SOME = {"num_classes": 2, "listed": "b"}


@pytest.mark.parametrize(
    ("before", "now", "changes"),
    [
        (OLD, OLD, []),
        (OLD, WHOLE, []),
        (WHOLE, WHOLE | {"listed": "of a later version"}, []),
        (WHOLE, SOME, []),
        (SOME, WHOLE, []),
        (SOME, SOME, []),
        (WHOLE, WHOLE | {"digest": "c"}, ["digest: 'a' -> 'c'"]),
        (WHOLE, SOME | {"listed": "c"}, ["listed: 'b' -> 'c'"]),
        (SOME, WHOLE | {"listed": "c"}, ["listed: 'b' -> 'c'"]),
        (OLD, SOME, ["digest: 'a' -> null", "num_images: 9 -> null"]),
        (SOME | {"scoring": "d"}, WHOLE | {"scoring": "e"}, ["scoring: 'd' -> 'e'"]),
    ],
)
def test_images_that_were_all_read_are_told_apart_by_pixels_and_others_by_their_list(
    before: dict[str, object], now: dict[str, object], changes: list[str]
) -> None:
    assert changed_images(before, now) == changes
    assert are_same_images(before, now) == are_same_images(now, before) == (not changes)


def test_the_list_counts_where_not_all_images_were_read() -> None:
    assert by_pixels(WHOLE) == OLD
    assert by_pixels(SOME) == SOME


def test_test_images_count_where_both_tell_them() -> None:
    one = WHOLE | {"test": "t"}
    assert are_same_images(one, WHOLE)
    assert are_same_images(WHOLE, one)
    assert not are_same_images(one, one | {"test": "u"})
    assert are_same_images(one, one | {"test": "u"}, tested=False)
    assert changed_images(one, one | {"test": "u"}) == ["test: 't' -> 'u'"]
    assert changed_images(WHOLE, one) == []
