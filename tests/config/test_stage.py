"""What follows from a stage's fields, by the facts of its mixer, and what a stage alone forbids."""

from __future__ import annotations

from typing import Any

import pytest

from vitnas.config.files import validate
from vitnas.config.stage import StageConfig
from vitnas.errors import ConfigError


def build(mixer: str, **fields: Any) -> StageConfig:
    return validate(StageConfig, {"token_mixer": mixer, "embed_dim": 64} | fields)


def test_heads_follow_from_either_field_and_belong_to_attention() -> None:
    given: list[dict[str, Any]] = [{}, {"num_heads": 4}, {"head_dim": 8}]
    assert [build("mhsa", **fields).heads for fields in given] == [2, 4, 8]
    assert [build("dwconv", **fields).heads for fields in given] == [0, 0, 0]


def test_what_is_null_is_the_mixers() -> None:
    stages = [build(mixer) for mixer in ("dwconv", "mbconv", "pool")]
    assert [stage.kernel for stage in stages] == [7, 3, 3]
    assert [stage.hidden_channels for stage in stages[:2]] == [128, 256]
    own = build("mbconv", kernel_size=5, expansion=1.5, tokens_dim=7)
    assert (own.kernel, own.hidden_channels, own.hidden_tokens) == (5, 96, 7)
    assert build("mlp").hidden_tokens == 32


def test_a_whole_block_has_neither_mlp_nor_norm() -> None:
    stages = build("mbconv"), build("dwconv"), build("dwconv", mlp_ratio=0.0)
    assert [stage.has_mlp for stage in stages] == [False, True, False]
    assert [stage.has_norm for stage in stages] == [False, True, True]


def test_squeeze_excitation_has_at_least_one_channel() -> None:
    assert [build("mbconv", se_ratio=r).se_channels for r in (0.0, 0.001, 0.25)] == [0, 1, 16]


def test_passes_are_written_as_a_list_or_as_in_the_papers() -> None:
    assert build("mhsa", groups=[8, 2]) == build("mhsa", groups="[8,2]")
    assert build("mhsa", groups="[8,2]").passes == 2
    assert [build("mhsa", groups=g, nll_ratio=1.0).has_nll for g in ([2], [2, 1])] == [False, True]
    with pytest.raises(ConfigError, match="a stage has one bracket"):
        build("mhsa", groups="[8,2][1]")


@pytest.mark.parametrize(
    ("passes", "groups", "schedule"),
    [(3, [1], (1, 1, 1)), (1, "[8,2]", (8,)), (4, [8, 2], (8, 2, 8, 2)), (2, [4, 1], (4, 1))],
)
def test_groups_are_cut_or_repeated_to_the_passes(
    passes: int, groups: Any, schedule: tuple[int, ...]
) -> None:
    found = build("mhsa", passes=passes, groups=groups)
    assert found == build("mhsa", groups=list(schedule))
    assert (found.passes, found.groups) == (passes, schedule)
    assert "passes" not in found.model_dump(), "keys of networks are those of their groups"


@pytest.mark.parametrize("field", ["mlp_ratio", "nll_ratio", "expansion"])
def test_a_ratio_leaves_a_channel(field: str) -> None:
    with pytest.raises(ConfigError, match=rf"{field} = 0\.01: leaves no hidden channel"):
        build("dwconv", **{field: 0.01})
