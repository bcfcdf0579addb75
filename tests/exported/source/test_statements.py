"""What does not fit on a line gets variables for its parts."""

from __future__ import annotations

from typing import Any

from vitnas.exported.source.layout import Call, Code, Listed, Repeat, call
from vitnas.exported.source.statements import assigned, statements


def block(mixer: Any, **more: Any) -> Call:
    return call("Block", {"dim": 128, "mixer": mixer, "hidden": 512, **more})


def attention(index: Any) -> Call:
    return call("GroupAttention", {"dim": 128, "heads": 4, "tokens": 16, "index": index})


def lines(name: str, value: Any) -> list[str]:
    (found,) = statements(assigned(name, value))
    return [line.removeprefix(" " * 8) for line in found]


def test_what_fits_is_one_assignment() -> None:
    made = call("stage", {"blocks": (block(Code("Pool()")),)})
    assert lines("first", made) == ["first = stage(Block(128, Pool(), hidden=512))"]


def test_parts_are_variables_from_the_longest_on() -> None:
    nlls = Repeat(call("NonLinearLayer", {"dim": 128, "hidden": 64}), "_", 0, 2)
    recursion = call("Recursion", {"block": block(attention(2)), "nlls": (nlls,)})
    down = call("Downsample", {"before": 64, "after": 128})
    assert lines("second", call("stage", {"blocks": (recursion,), "downsample": down})) == [
        "block = Block(128, GroupAttention(128, heads=4, tokens=16, index=2), hidden=512)",
        "nlls = [NonLinearLayer(128, hidden=64) for _ in range(2)]",
        "second = stage(Recursion(block, *nlls), downsample=Downsample(64, 128))",
    ]


def test_what_is_inside_of_a_loop_stays_there() -> None:
    several = Repeat(block(attention(Code("index")), passes=2), "index", 2, 5)
    down = call("Downsample", {"before": 64, "after": 128})
    assert lines("third", call("stage", {"blocks": (several,), "downsample": down})) == [
        "blocks = [",
        "    Block(",
        "        128,",
        "        GroupAttention(128, heads=4, tokens=16, index=index),",
        "        hidden=512,",
        "        passes=2,",
        "    )",
        "    for index in range(2, 5)",
        "]",
        "third = stage(*blocks, downsample=Downsample(64, 128))",
    ]


def test_blocks_that_differ_in_their_mixers_alone_are_made_in_a_loop_through_them() -> None:
    conv = call("SeparableConv", {"dim": 128})
    several = Repeat(block(conv, passes=2), "_", 0, 2)
    made = (block(conv, passes=2), block(attention(4), passes=2), several)
    loop = call("Loop", {"blocks": made})
    assert lines("third", call("named", {"blocks": loop})) == [
        "mixers = [",
        "    SeparableConv(128),",
        "    GroupAttention(128, heads=4, tokens=16, index=4),",
        "    *[SeparableConv(128) for _ in range(2)],",
        "]",
        "blocks = [Block(128, mixer, hidden=512, passes=2) for mixer in mixers]",
        "third = named(blocks=Loop(*blocks))",
    ]
    others = (block(conv), block(attention(4), passes=2), call("InvertedResidual", {"dim": 128}))
    found = lines("third", call("stage", {"blocks": others}))
    assert not any("mixers" in line for line in found)


def test_a_convolution_begins_a_line_of_layers() -> None:
    layers = ["nn.Conv2d(3, 8, 3, padding=1)", "nn.BatchNorm2d(8)", "nn.ReLU()"]
    made = call("nn.Sequential", {"layers": tuple(map(Code, [*layers, "nn.MaxPool2d(2)"] * 2))})
    assert lines("self.stem", call("named", {"conv": made})) == [
        "layers = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]",
        "layers += [nn.MaxPool2d(2)]",
        "layers += [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()]",
        "layers += [nn.MaxPool2d(2)]",
        "self.stem = named(conv=nn.Sequential(*layers))",
    ]


def test_a_variable_of_several_types_has_the_common_one() -> None:
    pool, conv = call("Pool", {}), call("SeparableConv", {"dim": 8})
    several = [*assigned("mixer", pool), *assigned("mixer", conv), *assigned("other", pool)]
    first, second = statements(several, assigned("mixer", pool))
    assert [line.strip() for line in first + second] == [
        "mixer: nn.Module = Pool()",
        "mixer = SeparableConv(8)",
        "other = Pool()",
        "mixer = Pool()",
    ]
    blocks = [Listed((pool,)), Listed((pool, conv)), Listed((pool,))]
    (found,) = statements([one for value in blocks for one in assigned("blocks", value)])
    assert found[0].strip() == "blocks: list[nn.Module] = [Pool()]"
