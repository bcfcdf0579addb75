"""The drawing of a network says what the network has, and no name in it can be HTML."""

from __future__ import annotations

import re
from typing import Any

from tests.report.runs import tree, trial
from vitnas.report.drawing import network_drawing
from vitnas.report.marks import colour


def drawn(config: dict[str, Any]) -> list[str]:
    return network_drawing(trial(0, config=config)).split("<br>")


def bars(line: str) -> list[tuple[str, str]]:
    """Colour and bars of each run of blocks."""
    return re.findall(r'<span style="color:(#\w+)">([▁-█\u2009]+)</span>', line)


def test_a_line_for_each_stage_and_one_for_the_whole() -> None:
    config = tree("dwconv", "mhsa", depth=3) | {"groups": "[1][1,1]"}
    first, second, whole = drawn(config)
    assert bars(first) == [(colour("dwconv"), "▅\u2009▅\u2009▅")]
    assert first.endswith("</span> 3x dwconv 32, 16 × 16 tokens")
    assert bars(second) == [(colour("mhsa"), "█\u2009█\u2009█")]
    assert " ↻2 3x mhsa 64" in second
    assert second.endswith(", 8 × 8 tokens")
    assert "stem conv" in whole


def test_two_mixers_of_a_stage_have_their_colours_in_turn() -> None:
    config = tree("mhsa", depth=3)
    config["stages"][0]["token_mixer"] = {"pattern": ["dwconv", "mhsa"]}
    stage, _ = drawn(config)
    assert [mark for mark, _ in bars(stage)] == [colour(m) for m in ("dwconv", "mhsa", "dwconv")]


def test_what_cannot_be_read_is_said_in_words() -> None:
    assert drawn({}) == ["not recorded"]
    (line,) = drawn({"name": "<b>"})
    assert line.startswith("unreadable configuration")


def test_no_line_hides_the_plot() -> None:
    config = tree("mhsa") | {
        "stem": {"kind": "conv", "stride": 4, "pools": 2, "act": "crelu", "filters": "dct"},
        "norm": "batchnorm",
        "downsample": "crelu",
        "global_pool": "flatten",
    }
    _, *whole = drawn(config)
    assert len(whole) > 1
    assert max(map(len, whole)) <= 56
    assert set(" | ".join(whole).split(" | ")) >= {"stem.act crelu", "global_pool flatten"}
