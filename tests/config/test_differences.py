"""In what two spaces differ."""

from __future__ import annotations

from vitnas.config.differences import differences, same_images, with_defaults
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


def test_fingerprints_agree_where_both_tell() -> None:
    one, older = {"digest": "a", "test": "b"}, {"digest": "a"}
    assert same_images(one, older, tested=True)
    assert same_images(one, {**one, "test": "c"}, tested=False)
    assert not same_images(one, {**one, "test": "c"}, tested=True)
    assert not same_images(one, {**one, "digest": "c"}, tested=False)
