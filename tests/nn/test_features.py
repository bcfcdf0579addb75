"""The levels of a network as timm lists them."""

from __future__ import annotations

import torch

from vitnas.config.model import ModelConfig
from vitnas.nn.features import as_feature, feature_levels


def test_several_stages_are_a_level_each(tiny_config: ModelConfig) -> None:
    assert feature_levels(tiny_config) == [
        {"module": "stages.0", "num_chs": 16, "reduction": 2},
        {"module": "stages.1", "num_chs": 32, "reduction": 4},
    ]


def test_of_one_stage_each_block_is_a_level(tiny_config: ModelConfig) -> None:
    tree = tiny_config.model_dump()
    tree.pop("groups", None)
    tree["stages"] = [tree["stages"][0] | {"depth": 3}]
    levels = feature_levels(ModelConfig.model_validate(tree))
    assert [level["module"] for level in levels] == [f"stages.0.blocks.{i}" for i in range(3)]
    assert {level["reduction"] for level in levels} == {2}


def test_tokens_become_a_picture_row_by_row() -> None:
    tokens = torch.arange(12.0).reshape(1, 6, 2)
    picture = as_feature(tokens, (2, 3), "NCHW")
    assert picture.shape == (1, 2, 2, 3)
    assert picture[0, :, 1, 2].tolist() == tokens[0, 5].tolist()
    assert as_feature(tokens, (2, 3), "NLC") is tokens
