"""Classes are matched by name, and by number where a side has no names."""

from __future__ import annotations

import pytest
from timm.data import ImageNetInfo

from vitnas.errors import ConfigError
from vitnas.scoring.classes import matched

NAMES = ("bee", "cat", "dog")


def test_the_same_classes() -> None:
    assert matched("net", 3, NAMES, "data", NAMES) == ((0, 1, 2), "")


def test_another_order_is_matched_by_name_and_said() -> None:
    places, remark = matched("net", 3, ("dog", "bee", "cat"), "data", NAMES)
    assert places == (1, 2, 0)
    assert "another order" in remark


def test_some_of_the_classes_by_name() -> None:
    places, remark = matched("net", 3, NAMES, "data", ("bee", "dog"))
    assert places == (0, 2)
    assert "2 of the network's 3 classes" in remark


@pytest.mark.parametrize(
    ("names", "classes", "remark"),
    [
        ((), ("0", "1", "2"), ""),
        (NAMES, ("0", "1", "2"), "data has no names of classes: they are matched by number"),
        ((), NAMES, "net has no names of classes: they are matched by number"),
    ],
)
def test_without_names_the_numbers_count(
    names: tuple[str, ...], classes: tuple[str, ...], remark: str
) -> None:
    assert matched("net", 3, names, "data", classes) == ((0, 1, 2), remark)


def test_folders_with_numbers_are_in_the_order_of_text_and_this_is_said() -> None:
    wanted = sorted(map(str, range(12)))
    places, remark = matched("net", 12, (), "folder", wanted)
    assert places == tuple(range(12))
    assert remark == (
        "net has no names of classes: they are matched by number, and number 2 is '10'"
    )


def test_names_are_compared_as_labels_txt_has_them() -> None:
    assert matched("net", 2, ("a b", "c"), "data", ("a  b", "c"))[0] == (0, 1)


def test_two_classes_that_look_alike_are_kept_apart_or_refused() -> None:
    """`labels.txt` has folders that differ in blanks alone by one name."""
    assert matched("net", 3, ("cat", "cat", "dog"), "data", ("cat", "cat ", "dog"))[0] == (0, 1, 2)
    for names, classes in (
        (("cat", "cat", "dog"), ("cat", "dog")),
        (("cat", "dog"), ("cat", "cat ")),
    ):
        with pytest.raises(ConfigError, match="two classes are called 'cat' here or in data"):
            matched("net", len(names), names, "data", classes)


def test_imagenet_s_classes_are_known_by_their_names() -> None:
    known = ImageNetInfo("imagenet-1k").label_names()
    places, _ = matched("net", 1000, (), "data", (known[217], known[3]))
    assert places == (217, 3)


@pytest.mark.parametrize(
    ("outputs", "names", "classes", "rule"),
    [
        (3, (), ("a", "b"), "net: has 3 classes, and data has 2"),
        (3, NAMES, ("0", "1"), "net: has 3 classes, and data has 2"),
        (
            3,
            NAMES,
            ("bee", "dogs", "fox"),
            r"net: has 3 classes \['bee', 'cat', 'dog'\]; data has 3 classes "
            r"\['bee', 'dogs', 'fox'\], and 'dogs' is not one of the first \(nearest: dog\)",
        ),
        (1000, (), ("a", "b"), "net: has 1000 classes, and data has 2"),
    ],
)
def test_other_classes_are_refused_with_both(
    outputs: int, names: tuple[str, ...], classes: tuple[str, ...], rule: str
) -> None:
    with pytest.raises(ConfigError, match=rule):
        matched("net", outputs, names, "data", classes)
