"""One line for every mistake in a space file: the place, the rule and the nearest valid value."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.config.trees import CONV, INF, MHSA, NAN, space_tree
from vitnas.config.files import dump_yaml
from vitnas.config.space import load_space
from vitnas.errors import ConfigError

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown top key": ({"/limts": {}}, r"limts = \{\}: unknown key \(nearest: limits\)"),
    "bracket in a key": ({"stages[0]": 1}, r"model\.stages\[0\] = 1: unknown key"),
    "a key named int": ({"/int": 1}, r"int = 1: unknown key"),
    "wrong type": ({"num_classes": "ten"}, r"model\.num_classes = 'ten': .*whole number"),
    "null": ({"stages": None}, r"model\.stages: is null and should be a list"),
    "mapping for list": ({"stages": {"a": 1}}, r"model\.stages = \{a: 1\}: should be a list"),
    "list for mapping": ({"stem": [1]}, r"model\.stem = \[1\]: should be a mapping"),
    "whole number as text": (
        {"stages": [CONV | {"depth": "1e1"}]},
        r"model\.stages\[0\]\.depth = '1e1': YAML reads this as text.*\(nearest: 10\)",
    ),
    "range as text": (
        {"drop_path_rate": {"float": [0.0, "5e-1"]}},
        r"model\.drop_path_rate\.float\[1\] = '5e-1': YAML .*\(nearest: 5\.0e-1\)",
    ),
    "more folds than there are": (
        {"/data": {"folds": 6}},
        r"data\.folds = 6: at most 5 parts of val_fraction 0\.2 are apart \(nearest: 5\)",
    ),
    "nan": ({"drop_path_rate": NAN}, r"model\.drop_path_rate = nan: should be a finite number"),
    "infinite gamma": ({"broad": {"gamma": INF}}, r"model\.broad\.gamma = inf: .*finite number"),
    "infinite range": ({"drop_path_rate": {"float": [0.0, INF]}}, r"two finite numbers"),
    "nan step": ({"drop_path_rate": {"float": [0.0, 0.5], "step": NAN}}, r"step = nan: must be"),
    "range beyond floats": (
        {"drop_path_rate": {"float": [0, 10**400]}},
        r"model\.drop_path_rate\.float = .*two finite numbers",
    ),
    "number beyond floats": (
        {"stages": [CONV | {"embed_dim": 8 * 10**400}]},
        r"model\.stages\[0\]\.embed_dim = 8000.*\(nearest: 1000000\)",
    ),
    "negative": (
        {"stages": [CONV | {"depth": -1}]},
        r"model\.stages\[0\]\.depth = -1: .*\(nearest: 1\)",
    ),
    "heads": (
        {"stages": [{"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 3}]},
        r"model\.stages\[0\]\.num_heads = 3: must divide embed_dim 16 \(nearest: 2\)",
    ),
    "passes that are no number beside the network's groups": (
        {"stages": [MHSA | {"passes": "mhsa"}]},
        r"model\.stages\[0\]\.passes = 'mhsa': should be a whole number",
    ),
    "groups without brackets beside the network's": (
        {"stages": [MHSA | {"groups": {"choice": [1, 2]}}]},
        r"model\.stages\[0\]\.groups = 1: should be a list",
    ),
    "groups of the network and of a stage": (
        {"stages": [MHSA | {"groups": [2]}]},
        r"model\.stages\[0\]\.groups = \[2\]: groups are given for the network; give them",
    ),
    "a wrong type behind a broken rule": (
        {
            "reattention_blocks": {"choice": [[1], 2]},
            "stages": [CONV | {"expansion": 1e-9}],
        },
        r"model\.reattention_blocks = \[1\]: should be a whole number",
    ),
    "null beside what it may stand for": (
        {
            "residual": {"choice": ["plain", "lrc"]},
            "stages": [CONV | {"residual": {"choice": ["lrc", "scale", None]}}],
        },
        r"model\.stages\[0\]\.residual\.choice = \['lrc', 'scale', null\]: null means the "
        r"network's `residual`, which may be lrc, too: leave out one \(nearest: \[lrc, scale\]\)",
    ),
    "null beside the norm that it may stand for": (
        {
            "norm": {"choice": ["layernorm", "batchnorm"]},
            "stages": [CONV | {"norm": {"choice": [None, "batchnorm"]}}],
        },
        r"model\.stages\[0\]\.norm\.choice = \[null, 'batchnorm'\]: null means the network's "
        r"`norm`, which may be batchnorm, too: leave out one \(nearest: \[batchnorm\]\)",
    ),
    "no head fits": (
        {"stages": [CONV | {"token_mixer": "mhsa", "num_heads": {"choice": [3, 5]}}]},
        r"model\.stages\[0\]\.num_heads = 3: none of 2 options fits.*must divide embed_dim 16",
    ),
    "groups and tokens": (
        {"stages": [MHSA], "groups": "[3]"},
        r"model\.stages\[0\]\.groups = \[3\]: 16 tokens cannot be split into 3.*nearest: \[2\]",
    ),
    "no schedule fits": (
        {"stages": [MHSA], "groups": {"choice": ["[3]", "[5]"]}},
        r"model\.groups = '\[3\]': none of 2 options.*: 16 tokens cannot be split into 3",
    ),
    "groups as range": ({"groups": {"int": [1, 2]}}, r"model\.groups: can only be searched by"),
    "unreadable stage groups": (
        {"groups": None, "stages": [CONV | {"groups": "[2"}], "reattention_blocks": 0},
        r"model\.groups",
    ),
    "endless number in groups": ({"groups": f"[{'9' * 5000}]"}, r"model\.groups = .*written like"),
    "endless schedule": ({"groups": "[1" + ",1" * 5000 + "]"}, r"at most 100 items"),
    "static keys": (
        {"stages": [MHSA | {"token_mixer": "ska"}], "groups": "[2]"},
        r"stages\[0\]\.groups = \[2\]: ska is bound to token positions.*nearest: \[1\]",
    ),
    "re-attention": ({"reattention_blocks": 1}, r"model\.reattention_blocks = 1: .*nearest: 0"),
    "gamma": ({"broad": {"gamma": 0.5}}, r"model\.broad\.gamma = 0\.5: .*nearest: 0"),
    "limits the wrong way round": (
        {"/limits": {"flops": {"min": 5.0e6, "max": 1.0e6}}},
        r"limits\.flops\.min = 5000000\.0: must not be above max 1000000\.0",
    ),
    "no pixel": ({"img_size": [8, 0]}, r"model\.img_size\[1\] = 0: .*nearest: 1"),
    "three sides": ({"img_size": [8, 8, 8]}, r"model\.img_size = \[8, 8, 8\]: .*at most 2"),
    "too many sizes": (
        {"img_size": {"int": [2, 64], "step": 2}},
        r"model\.img_size = \{int: \[2, 64\], step: 2\}: takes 8 values at most",
    ),
    "classes axis": (
        {"num_classes": {"choice": [10, 100]}},
        r"model\.num_classes = 100: digits has 10 classes \(nearest: 10\)",
    ),
    "one axis for all": ({"/model": {"choice": [1]}}, r"model = \{choice: \[1\]\}: must be a mapp"),
    "no model": ({"/model": None}, r"model: is null"),
    "no stages": ({"/model": {"img_size": 8}}, r"model\.stages: is required"),
    "a tie of different ranges": (
        {
            "drop_path_rate": {"float": [0.0, 0.5], "name": "t"},
            "stages": [CONV | {"mlp_ratio": {"float": [1.0, 2.0], "name": "t"}}],
        },
        r"model\.drop_path_rate\.name = 't': must offer what stages\[0\]\.mlp_ratio offers",
    ),
    "unknown key of a network to train first": (
        {"/seed_configs": [{}, {"stages": [{"depht": 1}]}]},
        r"yaml: seed_configs\[1\]\.stages\[0\]\.depht = 1: unknown key \(nearest: depth\)",
    ),
    "wrong type in a network to train first": (
        {"/seed_configs": [{"stages": [{"embed_dim": "wide"}]}]},
        r"yaml: seed_configs\[0\]\.stages\[0\]\.embed_dim = 'wide': should be a whole number",
    ),
    "an option in a network to train first": (
        {"/seed_configs": [{"norm": {"choice": ["batchnorm", "batchnrm"]}}]},
        r"yaml: seed_configs\[0\]\.norm = 'batchnrm': .*\(nearest: batchnorm\)",
    ),
    "a misspelt axis in a network to train first": (
        {"/seed_configs": [{"norm": {"choise": ["batchnorm"]}}]},
        r"yaml: seed_configs\[0\]\.norm\.choise: unknown key \(nearest: choice\)",
    ),
    "a schedule of a network to train first": (
        {"/seed_configs": [{"groups": "[2"}]},
        r"yaml: seed_configs\[0\]\.groups = '\[2': a group schedule is written like",
    ),
    "networks to train first as one axis": (
        {"/seed_configs": [{"choice": [{"norm": "batchnorm"}]}]},
        r"yaml: seed_configs\[0\] = \{choice: .*must be a mapping",
    ),
    "a number for a network to train first": (
        {"/seed_configs": [3]},
        r"yaml: seed_configs\[0\] = 3: should be a mapping",
    ),
    "long name": ({"/name": "a" * 300}, r"name = .*at most 100 characters"),
    "escape in a value": ({"norm": "\x1b[31m"}, r"model\.norm = '\\x1b\[31m'"),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_in_a_space_is_one_line(mistake: str, tmp_path: Path) -> None:
    changes, expected = MISTAKES[mistake]
    file = tmp_path / "s.yaml"
    file.write_text(dump_yaml(space_tree(changes)))
    with pytest.raises(ConfigError) as caught:
        load_space(file)
    line = str(caught.value)
    assert line.startswith(f"{file}: ")
    assert "\n" not in line
    assert re.search(expected, line), line
