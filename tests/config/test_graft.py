"""What may be said of a graft."""

from __future__ import annotations

import pytest

from vitnas.config.files import parse_yaml, validate
from vitnas.config.graft import GraftConfig, chosen_blocks
from vitnas.errors import ConfigError

STAGES = (0, 0, 1, 1, 1, 1, 2, 2)


@pytest.mark.parametrize(
    ("blocks", "chosen"),
    [
        ("all", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("last:3", (5, 6, 7)),
        ("stages:0,2", (0, 1, 6, 7)),
        ("stages:1-2", (2, 3, 4, 5, 6, 7)),
        ("stage:2", (6, 7)),
        ("6-7", (6, 7)),
        ("7, 0,2-3,2", (0, 2, 3, 7)),
        ("5", (5,)),
    ],
)
def test_blocks(blocks: str, chosen: tuple[int, ...]) -> None:
    assert chosen_blocks(blocks, STAGES) == chosen


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ("", "is not one of all, last:4"),
        ("all:", "is not one of"),
        ("first:2", "is not one of"),
        ("lst:2", r"nearest: last:2"),
        ("stage:", "is not one of"),
        ("last:0", r"has 8 blocks \(nearest: last:8\)"),
        ("last:9", "has 8 blocks"),
        ("8", r"there is no block '8'.* 0-7 \(nearest: 0-7\)"),
        ("5-2", "there is no block '5-2'"),
        ("stages:3", r"there is no stage '3'.*nearest: stages:0-2"),
        ("-1", "is not one of"),
        ("1.5", "is not one of"),
    ],
)
def test_blocks_that_are_not_there(blocks: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        chosen_blocks(blocks, STAGES)


@pytest.mark.parametrize(("written", "read"), [("6", "6"), ("[0, 2]", "0,2"), ("6-11", "6-11")])
def test_blocks_as_yaml_reads_them(written: str, read: str) -> None:
    tree = parse_yaml(f"{{mixer: ska, blocks: {written}}}")
    assert validate(GraftConfig, tree).blocks == read


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"mixer": "cska", "blocks": "last:4"}, "cska in last:4"),
        ({"mixer": "ska", "broad": {"gamma": 0.4}}, "ska in all, gamma 0.4"),
        ({"reattention_blocks": 2}, "re-attention 2"),
        ({}, "nothing"),
    ],
)
def test_a_few_words(fields: dict[str, object], line: str) -> None:
    assert validate(GraftConfig, fields).line() == line
