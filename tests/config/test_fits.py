"""Why values do not fit a network."""

from __future__ import annotations

import pytest

from tests.config.trees import CONV, MHSA
from vitnas.config.fits import (
    broad_problem,
    heads_misfit,
    mixer_misfit,
    passes_misfit,
    schedule_misfit,
    too_many_blocks,
)
from vitnas.config.model import ModelConfig

MBCONV = {"token_mixer": "mbconv", "embed_dim": 16}


def network(*stages: dict[str, object], **fields: object) -> ModelConfig:
    tree = {"img_size": 16, "stem": {"stride": 4}, "stages": [dict(tree) for tree in stages]}
    return ModelConfig.model_validate({**tree, **fields})


def test_a_schedule_fits_the_mixer_and_the_tokens_of_its_stage() -> None:
    model = network(CONV, MHSA)  # 16 tokens, then 4
    first, second = model.stages
    assert schedule_misfit(second, (2,), model) is None
    assert "4 tokens cannot be split into 8" in str(schedule_misfit(second, (8,), model))
    assert "dwconv is bound to token positions" in str(schedule_misfit(first, (4,), model))


def test_only_whole_blocks_are_passed_once() -> None:
    model = network(MBCONV, MHSA)
    whole, attention = model.stages
    assert "mbconv is passed once" in str(passes_misfit(whole, 2, model))
    assert [passes_misfit(whole, 1, model), passes_misfit(attention, 4, model)] == [None, None]


@pytest.mark.parametrize(("token", "fits"), [(True, False), (False, True)])
def test_a_grid_fits_without_a_class_token(token: bool, fits: bool) -> None:
    model = network(MHSA, class_token=token)
    assert (mixer_misfit(model.stages[0], "dwconv", model) is None) == fits
    assert mixer_misfit(model.stages[0], {"mixer": "mhsa"}, model) is None


def test_heads_divide_the_width() -> None:
    model = network({**MHSA, "head_dim": None})
    assert heads_misfit("num_heads", model.stages[0], 8, model) is None
    assert heads_misfit("head_dim", model.stages[0], None, model) is None
    problem = heads_misfit("num_heads", model.stages[0], 7, model)
    assert problem == "num_heads = 7: must divide embed_dim 32"
    wide = network({**MHSA, "head_dim": None, "num_heads": 5, "attn_dim": 40})
    assert heads_misfit("attn_dim", wide.stages[0], 40, wide) is None
    problem = heads_misfit("attn_dim", wide.stages[0], None, wide)
    assert problem == "num_heads = 5: must divide embed_dim 32"


def test_blocks_with_reattention_are_the_last_ones_without_groups() -> None:
    model = network({**MHSA, "groups": [2]}, {**MHSA, "depth": 3})
    assert too_many_blocks(model, 3, model) is None
    assert too_many_blocks(model, 4, model) == "at most 3 blocks can have re-attention"


def test_broad_attention_needs_queries_and_keys() -> None:
    assert broad_problem(network(CONV, MHSA)) is None
    assert "no stage has either" in str(broad_problem(network(CONV)))
    narrow = {"token_mixer": "pool", "embed_dim": 9}
    assert "do not divide the last width 9" in str(broad_problem(network(MHSA, narrow)))
