"""Rules that only the whole network can break."""

from __future__ import annotations

from tests.config.test_model import CONV, MHSA, build, complaint


def test_shared_maps_come_from_a_block_of_the_same_stage() -> None:
    deep, shared = {**MHSA, "depth": 4}, {"source": "shared"}
    config = build(deep, deep, reattention_blocks=3, reattention=shared)
    assert config.map_source == 4
    assert build(deep, deep, reattention_blocks=3).map_source is None
    assert complaint(deep, deep, reattention_blocks=4, reattention=shared).startswith(
        "reattention_blocks = 4: shared maps come from an earlier block of the stage: at most 3"
    )
    fields = {"reattention_blocks": 1, "reattention": shared}
    assert "a single pass" in complaint({**deep, "groups": [1, 1]}, **fields)
    assert "queries and keys" in complaint(deep, broad={"gamma": 1.0}, **fields)


def test_attention_is_needed_where_something_builds_on_it() -> None:
    assert complaint(CONV, reattention_blocks=1).endswith(
        "a stage with mhsa, and there is none (nearest: 0)"
    )
    assert "collects from mhsa and ska" in complaint(CONV, broad={"gamma": 0.5})
    cska = {"token_mixer": "cska", "embed_dim": 64}
    assert "collects from mhsa and ska" in complaint(cska, broad={"gamma": 0.5})
    assert build(CONV, broad={"gamma": 0.0}).broad_sources == ()


def test_reattention_needs_whole_maps() -> None:
    assert "g = 1 in every pass" in complaint(MHSA, groups="[4,1]", reattention_blocks=1)


def test_a_distillation_token_stands_beside_a_class_token_that_is_read() -> None:
    both = {"class_token": True, "distillation_token": True}
    config = build(MHSA, **both)
    assert config.num_prefix_tokens == 2
    assert config.num_tokens(0) == build(MHSA).num_tokens(0) + 2
    without = build(MHSA, distillation_token=True)
    assert without.num_prefix_tokens == 0
    assert without.key == build(MHSA).key
    assert "need global_pool: token" in complaint(MHSA, **both, global_pool="avg")
    assert "cska has a key for one token" in complaint({**MHSA, "token_mixer": "cska"}, **both)


def test_a_class_token_stays_among_tokens() -> None:
    assert "reads a grid" in complaint(CONV, class_token=True)
    assert "dwconv reads a grid" in complaint(MHSA, CONV, class_token=True)
    pyramid = build(MHSA, MHSA, class_token=True)
    assert [pyramid.num_tokens(index) for index in (0, 1)] == [16 * 16 + 1, 8 * 8 + 1]
    message = complaint(MHSA, MHSA, groups="[1][4]", class_token=True)
    assert "65 tokens cannot be split into 4" in message
    config = build(MHSA, class_token=True)
    assert config.pool == "token"
    assert config.num_tokens(0) == 16 * 16 + 1


def test_stages_are_one_to_five() -> None:
    assert build(*[MHSA] * 5).grids[-1] == (1, 1)
    assert "img_size = 32" in complaint(*[MHSA] * 5, stem={"kind": "conv", "stride": 4})
    assert complaint(*[MHSA] * 6).startswith("stages")
    assert complaint().startswith("stages = []")
