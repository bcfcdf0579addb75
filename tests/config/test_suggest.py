"""What is asked for a network, what is on offer, and what is refused."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.trees import space_of, stage
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import load_space
from vitnas.config.trials import RandomTrial, Refused

MIXERS = {"choice": ["dwconv", "ska", "cska", "mhsa"]}


class Recorder(RandomTrial):
    """A random draw that remembers what it was asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked: dict[str, Sequence[Any]] = {}

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        assert name not in self.asked
        self.asked[name] = list(choices)
        return super().suggest_categorical(name, choices)

    def suggest_int(self, name: str, low: int, high: int, **more: Any) -> int:
        self.asked[name] = (low, high)
        return super().suggest_int(name, low, high, **more)


shipped = functools.cache(load_space)


@given(st.integers(0, 10_000))
def test_what_cannot_matter_is_not_asked(seed: int) -> None:
    trial = Recorder(seed)
    config = shipped("hybrid_fashion").suggest(trial)
    for index, drawn in enumerate(config.stages):
        prefix = f"stages[{index}]."
        searched = index == 1 and drawn.facts.heads
        assert (f"{prefix}head_dim" in trial.asked) == searched
        assert (f"{prefix}nll_ratio" in trial.asked) == (drawn.passes > 1)
    mixers = {drawn.token_mixer for drawn in config.stages}
    if not mixers & {"mhsa", "ska"}:
        assert "broad.gamma" not in trial.asked
    if "mhsa" not in mixers:
        assert "reattention_blocks" not in trial.asked


@given(st.integers(0, 10_000))
def test_only_what_fits_is_on_offer(seed: int) -> None:
    """Every draw of the shipped spaces is a network; none is refused by a rule."""
    for name in ("digits", "hybrid_cifar", "hybrid_fashion"):
        config = shipped(name).suggest(RandomTrial(seed))
        assert validate(ModelConfig, config.to_tree()) == config


def test_a_narrowed_choice_is_a_parameter_of_its_own() -> None:
    groups = {"choice": ["[1]", "[1,1]", "[4,1]"]}
    space = space_of({"stages": [stage(token_mixer=MIXERS)], "groups": groups})
    names = set()
    for seed in range(60):
        trial = Recorder(seed)
        mixer = space.suggest(trial).stages[0].token_mixer
        expected = "groups" if mixer == "mhsa" else "groups@0,1"
        assert expected in trial.asked
        names.add(expected)
    assert names == {"groups", "groups@0,1"}


def test_a_whole_block_is_offered_one_pass() -> None:
    groups = {"choice": ["[1,1]", "[1]", "[4,1]"]}
    trial = Recorder(0)
    space = space_of({"stages": [stage(token_mixer="mbconv")], "groups": groups})
    assert space.suggest(trial).stages[0].groups == (1,)
    assert not any(name.startswith("groups") for name in trial.asked)


def test_passes_and_groups_are_drawn_apart_for_each_stage() -> None:
    searched = {"passes": {"int": [1, 4]}, "groups": {"choice": ["[1]", "[4,2]", "[2,1]"]}}
    stages = [stage(nll_ratio={"choice": [0.0, 1.0]}, **searched), stage(**searched)]
    space = space_of({"stages": stages})
    drawn = set()
    for seed in range(300):
        trial = Recorder(seed)
        first, second = space.suggest(trial).stages
        assert trial.asked["stages[0].passes"] == (1, 4)
        assert ("stages[0].nll_ratio" in trial.asked) == (first.passes > 1)
        drawn.add((first.groups, second.groups))
    once = [(1,), (4,), (2,), (1, 1), (4, 2), (2, 1), (1, 1, 1), (4, 2, 4), (2, 1, 2)]
    assert {groups for groups, _ in drawn} == {*once, (1,) * 4, (4, 2, 4, 2), (2, 1, 2, 1)}
    assert any(a[0] == 4 and b == (1, 1) for a, b in drawn)


def test_groups_that_are_the_same_with_one_pass_are_offered_once() -> None:
    groups = {"choice": ["[1]", "[4,2]", "[4,1]"]}
    space = space_of({"stages": [stage(groups=groups, passes={"int": [1, 2]})]})
    found = sorted(network.stages[0].groups for network in space.networks())
    assert found == [(1,), (1, 1), (4,), (4, 1), (4, 2)]


@pytest.mark.parametrize(
    ("mixer", "schedules"),
    [
        ("mhsa", [(1,), (1, 1), (4,), (4, 1)]),  # 3 does not divide 16 tokens
        ("dwconv", [(1,), (1, 1)]),
        ("identity", [(1,), (1, 1)]),
        ("mbconv", [(1,)]),
    ],
)
def test_passes_and_groups_fit_the_mixer(mixer: str, schedules: list[tuple[int, ...]]) -> None:
    searched = {"passes": {"int": [1, 2]}, "groups": {"choice": ["[1]", "[4,1]", "[3,1]"]}}
    space = space_of({"stages": [stage(token_mixer=mixer, **searched)]})
    found = [network.stages[0].groups for network in space.networks()]
    assert sorted(set(found)) == schedules
    assert len(found) == len(schedules), "no draw is refused, none stands for another"


def test_the_groups_of_a_pass_are_those_that_fit() -> None:
    searched = {"token_mixer": MIXERS, "groups": [{"choice": [1, 3, 4]}, 1]}
    space = space_of({"stages": [stage(**searched)]})
    found = {(n.stages[0].token_mixer, n.stages[0].groups) for n in space.networks()}
    mixed = {(mixer, (1, 1)) for mixer in MIXERS["choice"]}
    assert found == mixed | {("mhsa", (4, 1))}


def test_groups_of_passes_that_are_not_made_are_not_asked() -> None:
    each = {"choice": [1, 2]}
    space = space_of({"stages": [stage(groups=[each, each], passes={"int": [1, 3]})]})
    found = sorted(network.stages[0].groups for network in space.networks())
    pairs = [(a, b) for a in (1, 2) for b in (1, 2)]
    assert found == sorted([(1,), (2,), *pairs, *((a, b, a) for a, b in pairs)])


def test_a_mixer_that_reads_a_grid_is_not_offered_beside_a_class_token() -> None:
    space = space_of({"class_token": True, "stages": [stage(token_mixer=MIXERS)]})
    mixers = [network.stages[0].token_mixer for network in space.networks()]
    assert mixers == ["ska", "cska", "mhsa"]


def test_a_choice_among_options_is_offered_if_one_of_its_own_fits() -> None:
    """So `mhsa` is drawn as often as all others together."""
    for others, expected in ((["dwconv", "pool"], {"mhsa"}), (["pool", "ska"], {"mhsa", "ska"})):
        mixers = {"choice": ["mhsa", {"choice": others}]}
        space = space_of({"class_token": True, "stages": [stage(token_mixer=mixers)]})
        assert {space.suggest(RandomTrial(seed)).stages[0].token_mixer for seed in range(30)} == (
            expected
        )


def test_optuna_can_draw_from_it_and_never_sees_changing_categories() -> None:
    space = load_space("digits")
    study = optuna.create_study(
        directions=["maximize", "minimize"], sampler=optuna.samplers.TPESampler(seed=0)
    )
    for _ in range(40):
        trial = study.ask()
        config = space.suggest(trial)
        study.tell(trial, (len(config.key), config.stages[0].embed_dim))
    names = {name for trial in study.trials for name in trial.params}
    assert "stages[0].token_mixer" in names
    assert all("model" not in name for name in names)


def test_reattention_is_offered_up_to_what_there_is() -> None:
    stages = [stage(depth={"int": [1, 3]}), stage(token_mixer="dwconv")]
    space = space_of({"stages": stages, "reattention_blocks": {"int": [0, 9]}})
    for seed in range(20):
        trial = Recorder(seed)
        config = space.suggest(trial)
        assert trial.asked["reattention_blocks"] == (0, config.stages[0].depth)


def test_labels_name_long_options() -> None:
    trial = Recorder(0)
    load_space("ska_table5").suggest(trial)
    assert trial.asked["stages"][1] == "dwconv ska mhsa mhsa"


def test_axes_of_one_name_are_drawn_together() -> None:
    tied = {"choice": [1.0, 2.0, 3.0], "name": "ratio"}
    space = space_of({"stages": [stage(mlp_ratio=tied), stage(mlp_ratio=tied)]})
    drawn = list(space.networks())
    assert len(drawn) == 3
    assert all(config.stages[0].mlp_ratio == config.stages[1].mlp_ratio for config in drawn)


def test_ranges_draw_both_ends_and_keep_to_their_steps() -> None:
    space = space_of({"stages": [stage(embed_dim={"int": [32, 96], "step": 32})]})
    assert {config.stages[0].embed_dim for config in space.networks()} == {32, 64, 96}
    space = space_of({"stages": [stage(mlp_ratio={"float": [1.0, 4.0], "log": True})]})
    ratios = [space.suggest(RandomTrial(seed)).stages[0].mlp_ratio for seed in range(100)]
    assert 1.0 <= min(ratios) < 1.3
    assert 3.0 < max(ratios) <= 4.0
    with pytest.raises(ValueError, match="continuous"):
        list(space.networks())


def test_the_same_seed_draws_the_same_network() -> None:
    space = load_space("hybrid_cifar")
    assert space.suggest(RandomTrial(3)) == space.suggest(RandomTrial(3))


def test_a_draw_that_no_axis_can_save_is_refused() -> None:
    space = space_of({"stages": [stage(token_mixer=MIXERS)], "broad": {"gamma": 0.5}})
    outcomes = set()
    for seed in range(40):
        try:
            outcomes.add(space.suggest(RandomTrial(seed)).stages[0].token_mixer)
        except Refused as refusal:
            outcomes.add(str(refusal).partition(":")[0])
    assert outcomes == {"mhsa", "ska", "broad.gamma = 0.5"}
