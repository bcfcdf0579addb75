"""What may be said of a graft."""

from __future__ import annotations

from typing import Any

import pytest

from vitnas.config.files import dump_yaml, parse_yaml, validate
from vitnas.config.graft import GraftConfig, GraftFile, chosen_blocks
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


def test_a_file_goes_round() -> None:
    grafts = [{"mixer": "cska", "blocks": "last:2"}, {"broad": {"gamma": 0.4}}]
    tree = {"model": "vit", "options": {"img_size": [32, 48], "mlp_ratio": 1.0}, "grafts": grafts}
    file = validate(GraftFile, parse_yaml(dump_yaml(tree)))
    assert [config.to_tree() for config in file.grafts] == grafts
    assert file.options.given() == {"img_size": (32, 48), "mlp_ratio": 1.0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grafts": []}, "grafts = .*at least 1"),
        ({"grafts": [{"mixer": "ska", "blok": 1}]}, r"grafts\[0\].blok = 1.*nearest: blocks"),
        ({"grafts": [{"broad": {"gamma": "1e-1"}}]}, r"grafts\[0\].broad.gamma"),
        ({"options": {"pretrained": True}}, "options.pretrained = true: unknown key"),
        ({"options": {"pretrained_cfg": "x"}}, "options.pretrained_cfg"),
        ({"options": {"checkpoint_path": "x"}}, "options.checkpoint_path = 'x'"),
        ({"options": {"model_name": "hf-hub:some/thing"}}, "options.model_name = .*unknown key"),
        ({"options": {"img_siz": 8}}, "options.img_siz = 8: unknown key .nearest: img_size"),
        ({"options": {"norm_layer": {"a": 1}}}, r"options.norm_layer = \{a: 1\}"),
        ({"options": {"embed_dim": 10**12}}, "options.embed_dim = 1000000000000: .*16384"),
        ({"model": 3}, "model = 3"),
    ],
)
def test_a_wrong_file_is_refused_with_its_address(change: dict[str, Any], said: str) -> None:
    tree: dict[str, Any] = {"model": "vit", "grafts": [{"mixer": "ska"}]}
    with pytest.raises(ConfigError, match=said):
        validate(GraftFile, tree | change)
