"""Which blocks of a stage have which token mixer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config.trees import space_of, stage
from vitnas.config.files import validate
from vitnas.config.mixers import MIXERS
from vitnas.config.model import ModelConfig
from vitnas.config.one_line import one_line
from vitnas.config.pattern import MixerPattern, shortest_pattern
from vitnas.config.recipe import comparable_maps
from vitnas.config.trials import RandomTrial
from vitnas.errors import ConfigError

ALTERNATING = {"pattern": ["dwconv", "mhsa"]}
AT_THE_END = {"pattern": ["dwconv"], "last": "ska", "blocks": 2}


def network(*mixers: Any, depth: int = 4, **fields: Any) -> ModelConfig:
    own = {name: fields.pop(name) for name in ("groups", "nll_ratio") if name in fields}
    stages = [stage(token_mixer=mixer, depth=depth, head_dim=8, **own) for mixer in mixers]
    return validate(
        ModelConfig, {"img_size": 32, "stem": {"stride": 4}, "stages": stages, **fields}
    )


def test_a_pattern_repeats_and_the_last_blocks_may_have_another_mixer() -> None:
    mixers = [network(mixer).stages[0].mixers for mixer in (ALTERNATING, AT_THE_END)]
    assert mixers == [("dwconv", "mhsa") * 2, ("dwconv", "dwconv", "ska", "ska")]
    assert network(ALTERNATING, depth=3).stages[0].mixers == ("dwconv", "mhsa", "dwconv")


@pytest.mark.parametrize(
    ("mixers", "expected"),
    [
        ("aaa", "a"),
        ("abb", MixerPattern.model_construct(pattern=("a",), last="b", blocks=2)),
        ("abab", MixerPattern.model_construct(pattern=("a", "b"))),
        ("abaa", MixerPattern.model_construct(pattern=("a", "b", "a"))),
        ("aba", MixerPattern.model_construct(pattern=("a", "b"))),
    ],
)
def test_every_sequence_of_mixers_has_one_spelling(
    mixers: str, expected: str | MixerPattern, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in set(mixers):
        monkeypatch.setitem(MIXERS, name, MIXERS["pool"])
    found = shortest_pattern(tuple(mixers))
    assert str(found) == str(expected)
    assert isinstance(found, str) or found.of_blocks(len(mixers)) == tuple(mixers)


def test_patterns_of_the_same_blocks_are_one_network() -> None:
    def keys(depth: int, *mixers: Any) -> set[str]:
        return {network(mixer, depth=depth).key for mixer in mixers}

    assert len(keys(2, ALTERNATING, {"pattern": ["dwconv"], "last": "mhsa"})) == 1
    assert len(keys(3, "mhsa", {"pattern": ["mhsa", "mhsa"]})) == 1
    assert len(keys(3, ALTERNATING, {"pattern": ["dwconv"], "last": "mhsa"})) == 2


def test_a_model_file_keeps_the_pattern() -> None:
    for mixer in (ALTERNATING, AT_THE_END):
        config = network(mixer)
        assert config.to_tree()["stages"][0]["token_mixer"] == mixer
        assert validate(ModelConfig, config.to_tree()) == config


def test_a_line_names_both_mixers() -> None:
    assert one_line(network(ALTERNATING)) == "4x (dwconv+mhsa) 32 h4 | stride 4"
    assert one_line(network(AT_THE_END)) == "4x (dwconv, last 2 ska) 32 h4 | stride 4"


def test_groups_are_of_the_blocks_that_can_be_sliced() -> None:
    config = network(ALTERNATING, groups=[4, 1])
    assert config.only(0, "mhsa").stages[0].groups == (4, 1)
    assert config.only(0, "dwconv").stages[0].groups == (1, 1)
    with pytest.raises(ConfigError, match=r"groups = \[4\]: dwconv is bound to token positions"):
        network(AT_THE_END, groups=[4])


def test_the_last_k_attention_blocks_have_reattention() -> None:
    config = network("mhsa", ALTERNATING, reattention_blocks=3)
    assert config.reattention_plan == (1, 2)
    assert config.has_reattention(0) == (False, False, False, True)
    assert config.has_reattention(1) == (False, True, False, True)
    assert config.attention_span == (0, 7)
    with pytest.raises(ConfigError, match=r"reattention_blocks = 7: only the last 6 mhsa blocks"):
        network("mhsa", ALTERNATING, reattention_blocks=7)


def test_a_shared_map_is_of_the_attention_before() -> None:
    shared: dict[str, Any] = {"reattention": {"source": "shared"}, "reattention_blocks": 1}
    assert network("pool", ALTERNATING, **shared).map_source == 5
    with pytest.raises(ConfigError, match="at most 1 here"):
        network(ALTERNATING, **shared | {"reattention_blocks": 2})


def test_blocks_without_maps_have_none_to_compare() -> None:
    assert comparable_maps(network("mhsa"), 3) == 3
    assert comparable_maps(network(AT_THE_END), 3) == 1


@pytest.mark.parametrize(
    ("mixer", "expected"),
    [
        (
            {"pattern": ["dwconv", "mhsa", "ska"]},
            "token_mixer.pattern = ['dwconv', 'mhsa', 'ska']: 3 mixers are longer than a stage of "
            "depth 2 (nearest: ['dwconv', 'mhsa'])",
        ),
        (
            {"pattern": ["dwconv"], "last": "ska", "blocks": 2},
            "token_mixer.blocks = 2: a stage of depth 2 has no room for so many last blocks beside "
            "1 of the pattern (nearest: 1)",
        ),
        (
            {"pattern": ["dwconv"], "last": "dwconv"},
            "token_mixer.last = 'dwconv': is in the pattern already; write out the pattern",
        ),
        ({"pattern": ["dwconv"], "blocks": 2}, "token_mixer.last: is required beside blocks"),
        ({"pattern": []}, "token_mixer.pattern = []: should have at least 1 item, not 0"),
        ({"pattern": ["dwconf"]}, "token_mixer.pattern[0] = 'dwconf': no such token mixer"),
        ({"patern": ["dwconv"]}, "token_mixer.patern = ['dwconv']: unknown key (nearest: pattern)"),
    ],
)
def test_a_mistake_is_one_line(mixer: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        network(mixer, depth=2)
    assert str(caught.value).startswith("stages[0]." + expected)


@pytest.mark.parametrize(
    "fields",
    [
        {"token_mixer": {"choice": ["mhsa", {"pattern": ["dwconv", "mhsa", "ska"]}]}},
        {"token_mixer": {"pattern": ["dwconv", {"choice": ["mhsa", "ska", "dwconv"]}]}},
        {
            "token_mixer": {
                "pattern": ["dwconv", "pool"],
                "last": {"choice": [None, "ska", "mhsa", "pool"]},
                "blocks": {"int": [1, 4]},
            }
        },
        {
            "token_mixer": {
                "choice": [
                    "mlp",
                    {"pattern": ["pool", "ska"]},
                    {"pattern": ["pool", "ska", "pool", "ska"]},
                    {"pattern": ["ska"], "last": "pool", "blocks": {"int": [1, 4]}},
                ]
            }
        },
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_only_patterns_that_fit_are_on_offer(fields: dict[str, Any], is_first: bool) -> None:
    """Every answer is a network, each one another, whether depth or mixers are asked first."""
    depth = {"depth": {"int": [1, 4]}}
    tree = {"embed_dim": 32, **(depth | fields if is_first else fields | depth)}
    space = space_of({"stages": [tree]})
    drawn = [space.suggest(RandomTrial(seed)) for seed in range(150)]
    assert any(len(config.stages[0].kinds) > 1 for config in drawn)
    keys = [config.key for config in space.networks()]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("second", ["ska", {"choice": ["ska", "pool"]}])
def test_a_choice_among_patterns_waits_for_the_depth(second: Any, is_first: bool) -> None:
    """It is on offer only if one of them fits, so no draw is refused."""
    among = {"choice": [{"pattern": ["mhsa", second]}, {"pattern": ["mhsa"], "last": "ska"}]}
    fields: dict[str, Any] = {"token_mixer": {"choice": ["mlp", among]}}
    depth = {"depth": {"int": [1, 3]}}
    tree = {"embed_dim": 32, **(depth | fields if is_first else fields | depth)}
    space = space_of({"stages": [tree]})
    stages = [space.suggest(RandomTrial(seed)).stages[0] for seed in range(60)]
    drawn = {(stage.depth, len(stage.kinds)) for stage in stages}
    assert drawn == {(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)}
