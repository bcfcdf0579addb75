"""Expressions are printed as ruff formats them."""

from __future__ import annotations

import pytest

from vitnas.exported.source.layout import (
    Code,
    Listed,
    Repeat,
    Through,
    call,
    definition,
    literal,
    printed,
    signature,
    wrapped,
)

INNER = call("Attention", {"dim": 256, "heads": 8})


def block(mixer: object = INNER) -> object:
    return call("Block", {"dim": 256, "mixer": mixer, "hidden": 1024})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-6, "1e-6"),
        ((8, 2), "(8, 2)"),
        ((0.5,), "(0.5,)"),
        (Code("nn.GELU"), "nn.GELU"),
        ("avg", "'avg'"),
    ],
)
def test_literals(value: object, text: str) -> None:
    assert literal(value) == text


def test_what_fits_is_one_line() -> None:
    assert printed(block(), 4, after=",") == [
        "    Block(256, Attention(256, heads=8), hidden=1024),"
    ]


def test_arguments_stand_on_one_line_or_on_one_each() -> None:
    assert printed(block(), 50) == [
        " " * 50 + "Block(",
        " " * 54 + "256,",
        " " * 54 + "Attention(256, heads=8),",
        " " * 54 + "hidden=1024,",
        " " * 50 + ")",
    ]
    assert printed(block(), 42)[1] == " " * 46 + "256, Attention(256, heads=8), hidden=1024"


def test_repeats_are_comprehensions() -> None:
    several = Repeat(call("Block", {"index": Code("index")}), "index", 2, 7)
    assert printed(several, 0) == ["*[Block(index=index) for index in range(2, 7)]"]
    assert printed(several, 60)[2] == " " * 64 + "for index in range(2, 7)"
    stage = call("Stage", {"blocks": (several, INNER)})
    assert printed(stage, 0) == [
        "Stage(*[Block(index=index) for index in range(2, 7)], Attention(256, heads=8))"
    ]


def test_signatures() -> None:
    assert signature({}) == "    def __init__(self) -> None:"
    assert signature({"dim": "int", "blocks": "nn.Module"}) == (
        "    def __init__(self, dim: int, *blocks: nn.Module) -> None:"
    )
    loop = {"blocks": "nn.Module", "nlls": "Sequence[nn.Module]"}
    assert "*blocks: nn.Module, nlls: Sequence" in signature(loop)
    long = signature({f"number_of_{index}": "int" for index in range(6)})
    assert long.splitlines()[1] == "        self,"
    assert all(len(line) <= 88 for line in long.splitlines())


def test_the_last_brackets_of_a_long_line_are_opened() -> None:
    line = f"        self.key = nn.Conv2d({', '.join(['hidden'] * 9)}, bias=False)"
    assert wrapped(line[:80]) == line[:80]
    first, inside, last = wrapped(line).splitlines()
    assert (first, last) == ("        self.key = nn.Conv2d(", "        )")
    assert inside.startswith("            hidden, hidden")


def test_a_list_is_one_line_or_an_item_on_each() -> None:
    item = call("Block", {"dim": 16, "mixer": call("Attention", {"dim": 16, "heads": 2})})
    assert printed(Listed((item,)), 0) == ["[Block(16, Attention(16, heads=2))]"]
    assert printed(Listed((item, item)), 20, "blocks = ")[1:] == [
        *[" " * 24 + "Block(16, Attention(16, heads=2)),"] * 2,
        " " * 20 + "]",
    ]
    several = Listed((Repeat(item, "_", 0, 2),))
    assert printed(several, 0) == ["[Block(16, Attention(16, heads=2)) for _ in range(2)]"]
    inside = "Block(16, Attention(16, heads=2)) for _ in range(2)"
    assert printed(several, 32, "blocks = ")[1] == " " * 36 + inside
    assert printed(several, 50, "blocks = ")[2] == " " * 54 + "for _ in range(2)"
    through = Through(call("Block", {"mixer": Code("mixer")}), "mixer", "mixers")
    assert printed(Listed((through,)), 0) == ["[Block(mixer) for mixer in mixers]"]


def test_a_function_begins_on_as_few_lines_as_fit() -> None:
    assert definition("f", {"a": "int"}, "Tensor") == "def f(a: int) -> Tensor:"
    many = {f"parameter_{number}": "int" for number in range(4)}
    assert definition("function", many, "Tensor").count("\n") == 2
    assert (
        definition("function", {**many, "and_one_more_parameter": "int"}, "Tensor").count("\n") == 6
    )
