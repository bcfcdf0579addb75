"""Stages: which blocks, where, and what broad attention collects."""

from __future__ import annotations

import torch

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.nn import build_model
from vitnas.nn.stage import Stage, tapped_blocks


def hierarchy(**fields: object) -> ModelConfig:
    stages = [
        {"token_mixer": "mhsa", "depth": 2, "embed_dim": 8, "num_heads": 2},
        {"token_mixer": "dwconv", "depth": 1, "embed_dim": 12},
        {"token_mixer": "mhsa", "depth": 3, "embed_dim": 16, "num_heads": 4},
    ]
    tree = {"img_size": 32, "stem": {"stride": 2}, "stages": stages, **fields}
    return validate(ModelConfig, tree)


def test_brings_tokens_to_its_grid() -> None:
    config, x = hierarchy(), torch.randn(2, 256, 8)
    for index, (tokens, width) in enumerate([(256, 8), (64, 12), (16, 16)]):
        stage = config.stages[index]
        x = Stage(config, index, [0.0] * stage.depth).eval()(x)
        assert x.shape == (2, tokens, width)


def test_reattention_is_in_the_last_k_mhsa_blocks_of_the_network() -> None:
    """A stage without maps is passed over."""
    for wanted, expected in [
        (0, [[0, 0], [0], [0, 0, 0]]),
        (2, [[0, 0], [0], [0, 1, 1]]),
        (4, [[0, 1], [0], [1, 1, 1]]),
    ]:
        model = build_model(hierarchy(reattention_blocks=wanted))
        found = [
            [int(getattr(block.mixer, "reattention", None) is not None) for block in stage.blocks]
            for stage in model.stages
        ]
        assert found == expected


def test_blocks_are_numbered_through_the_network() -> None:
    """So that no two blocks share a fixed permutation."""
    stages = [
        {"token_mixer": "mhsa", "depth": 2, "embed_dim": 8, "num_heads": 2, "groups": [4, 2]}
    ] * 2
    tree = {"img_size": 16, "stem": {"stride": 2}, "stages": stages}
    model = build_model(validate(ModelConfig, tree))
    seeds = [
        (shuffle.block, shuffle.pass_index)
        for stage in model.stages
        for block in stage.blocks
        for shuffle in block.block.mixer.shuffles.values()
    ]
    assert len(seeds) == 8
    assert len(set(seeds)) == 8


def test_broad_attention_collects_from_every_block_of_one_stage() -> None:
    stage = {"token_mixer": "mhsa", "depth": 3, "embed_dim": 32}
    config = validate(ModelConfig, {"img_size": 32, "broad": {"gamma": 1.0}, "stages": [stage]})
    assert tapped_blocks(config, 0) == (True, True, True)


def test_broad_attention_collects_from_the_last_block_of_each_attention_stage() -> None:
    config = hierarchy(broad={"gamma": 1.0})
    assert [tapped_blocks(config, i) for i in range(3)] == [
        (False, True),
        (False,),
        (False, False, True),
    ]


MIXED = {
    "token_mixer": {"pattern": ["dwconv", "mhsa"]},
    "depth": 4,
    "embed_dim": 16,
    "num_heads": 2,
    "groups": [4, 1],
    "nll_ratio": 1.0,
}


def mixed(**fields: object) -> ModelConfig:
    return validate(
        ModelConfig, {"img_size": 16, "stem": {"stride": 4}, "stages": [MIXED]} | fields
    )


def test_two_mixers_take_turns_in_a_stage_with_passes() -> None:
    blocks = build_model(mixed()).stages[0].blocks
    names = [type(block.block.mixer).__name__ for block in blocks]
    assert names == ["SeparableConv", "MultiHeadSelfAttention"] * 2
    assert [len(block.nlls) for block in blocks] == [2, 2, 2, 2]
    assert [block.block.mixer.groups for block in blocks[1::2]] == [(4, 1), (4, 1)]


def test_broad_attention_and_shared_maps_pass_over_the_blocks_without_maps() -> None:
    assert tapped_blocks(mixed(broad={"gamma": 1.0}), 0) == (False, True, False, True)
    whole = MIXED | {"groups": [1], "depth": 5}
    shared = {"reattention": {"source": "shared"}, "reattention_blocks": 1, "stages": [whole]}
    config = mixed(**shared)
    assert tapped_blocks(config, 0) == (False, True, False, True, False)
    model = build_model(config).eval()
    assert model(torch.randn(2, 3, 16, 16)).shape == (2, 1000)


def test_the_temperature_falls_over_all_attention_blocks() -> None:
    config = mixed(temperature={"kind": "linear", "last": 0.5})
    blocks = build_model(config).stages[0].blocks
    assert [round(block.block.mixer.scale * 8**0.5, 6) for block in blocks[1::2]] == [1.0, 2.0]


def test_nothing_is_collected_without_broad_attention() -> None:
    assert [tapped_blocks(hierarchy(), i) for i in range(3)] == [
        (False, False),
        (False,),
        (False, False, False),
    ]
