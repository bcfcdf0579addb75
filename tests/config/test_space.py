"""The space language: what is asked, what is on offer, and what a wrong file gets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.config.files import parse_yaml, validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, SpaceConfig, load_space, shipped_spaces
from vitnas.config.trials import RandomTrial, Refused
from vitnas.errors import ConfigError

BASE: dict[str, Any] = {
    "img_size": 8,
    "in_chans": 1,
    "num_classes": 10,
    "stem": {"kind": "conv", "stride": 2},
    "stages": [{"token_mixer": "mhsa", "embed_dim": 32}],
}
MIXERS = {"choice": ["dwconv", "ska", "cska", "mhsa"]}


def space_of(model: dict[str, Any], **fields: Any) -> SearchSpace:
    tree = {"name": "test", "model": BASE | model, **fields}
    return SearchSpace(validate(SpaceConfig, tree, file="s.yaml"), file="s.yaml")


def stage(**fields: Any) -> dict[str, Any]:
    return {"token_mixer": "mhsa", "embed_dim": 32, **fields}


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


@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_every_shipped_space_draws_networks(name: str) -> None:
    space = load_space(name)
    assert space.name == name
    drawn = [space.suggest(RandomTrial(seed)) for seed in range(50)]
    assert len({config.key for config in drawn}) > 3


def test_all_the_spaces_of_the_papers_are_shipped() -> None:
    papers = {
        "ska_table5": 7,
        "deepvit_fig9": 13,
        "bvit_table1": 6,
        "sret_table7": 16,
        "sret_fig5": 16,
    }
    for name, count in papers.items():
        assert len({config.key for config in load_space(name).networks()}) == count
    assert {"digits", "hybrid_cifar", "hybrid_imagenet"} <= set(shipped_spaces())


@given(st.integers(0, 10_000))
def test_what_cannot_matter_is_not_asked(seed: int) -> None:
    trial = Recorder(seed)
    config = load_space("digits").suggest(trial)
    for index, drawn in enumerate(config.stages):
        prefix = f"stages[{index}]."
        searched = index == 1 and drawn.token_mixer != "dwconv"
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
        config = load_space(name).suggest(RandomTrial(seed))
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


def test_choices_may_hold_mappings_with_choices_of_their_own() -> None:
    options = [
        {"token_mixer": "dwconv", "embed_dim": 32, "kernel_size": {"choice": [3, 5]}},
        {"token_mixer": "mhsa", "embed_dim": {"choice": [32, 64]}, "head_dim": 16},
    ]
    space = space_of({"stages": [{"choice": options}]})
    assert len({config.key for config in space.networks()}) == 4
    names = {axis.name for axis in space.axes}
    assert names == {
        "stages[0]",
        "stages[0]#0/stages[0].kernel_size",
        "stages[0]#1/stages[0].embed_dim",
    }


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


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ({"img_sise": 8}, "model.img_sise = 8: unknown key (nearest: img_size)"),
        ({"img_size": {"choice": []}}, "model.img_size.choice = []: a choice needs"),
        ({"img_size": {"choice": 8}}, "model.img_size.choice = 8: a choice needs"),
        ({"img_size": {"choise": [8]}}, "model.img_size.choise: unknown key (nearest: choice)"),
        ({"img_size": {"choice": [8, 8]}}, "model.img_size.choice[1] = 8: stands twice"),
        ({"img_size": {"int": [16, 8]}}, "model.img_size.int = [16, 8]: an empty range"),
        ({"img_size": {"int": [8.0, 16]}}, "model.img_size.int = [8.0, 16]: a range is two whole"),
        (
            {"img_size": {"int": [8, 16], "stop": 8}},
            "model.img_size.stop = 8: beside int there may",
        ),
        ({"img_size": {"int": [8, 16], "step": 0}}, "model.img_size.step = 0: must be above 0"),
        ({"drop_path_rate": {"float": [0.0, 0.1], "log": True}}, "model.drop_path_rate.log = true"),
        ({"num_classes": "5e6"}, "model.num_classes = '5e6': YAML reads this as text"),
        (
            {"stages": [stage(token_mixer={"choice": ["mhsa", "sak"]})]},
            "model.stages[0].token_mixer",
        ),
        (
            {"stages": [stage(num_heads=5)]},
            "model.stages[0].num_heads = 5: must divide embed_dim 32",
        ),
        ({"groups": "[1][1]"}, "model.groups = '[1][1]': 2 brackets for 1 stages"),
        (
            {"groups": {"choice": ["[1]", "[1][2]"]}},
            "model.groups.choice[1] = '[1][2]': 2 brackets",
        ),
        (
            {"groups": {"choice": ["[1]", "8,2"]}},
            "model.groups.choice[1] = '8,2': a group schedule",
        ),
        ({"groups": "[3]"}, "model.stages[0].groups = [3]: 16 tokens cannot be split"),
        ({"img_size": 9}, "model.img_size = 9: must be a multiple of 2"),
        ({"num_classes": 1000}, "model.num_classes = 1000: digits has 10 classes (nearest: 10)"),
        ({"in_chans": 3}, "model.in_chans = 3: digits has 1 channels (nearest: 1)"),
        ({"stages": {"int": [1, 2]}}, "model.stages"),
        ({"stages": []}, "model.stages = []"),
    ],
)
def test_what_is_wrong_has_file_address_and_value(model: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        space_of(model)
    line = str(caught.value)
    assert line.startswith(f"s.yaml: {expected}"), line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "a b"}, "name = 'a b'"),
        ({"proxies": {}}, "proxies = {}: unknown key (nearest: proxy)"),
        ({"proxy": {"epoch": 3}}, "proxy.epoch = 3: unknown key (nearest: epochs)"),
        ({"proxy": {"epochs": {"choice": [1]}}}, "proxy.epochs"),
        (
            {"limits": {"flop": {"max": 1.0}}},
            "limits.flop = {max: 1.0}: unknown key (nearest: flops)",
        ),
        (
            {"limits": {"flops": {"max": "5e6"}}},
            "limits.flops.max = '5e6': YAML reads this as text",
        ),
        (
            {"objectives": {"top1": "minimize"}},
            "objectives.top1 = 'minimize': should be 'maximize'",
        ),
        ({"objectives": {"latency": "minimize"}}, "objectives.latency = 'minimize': unknown key"),
        ({"data": {"name": "mnist"}}, "data.name = 'mnist': no such data set"),
    ],
)
def test_the_rest_of_the_file_is_checked_too(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        space_of({}, **fields)
    assert str(caught.value).startswith(f"s.yaml: {expected}"), str(caught.value)


def test_a_name_that_is_no_file_and_no_shipped_space() -> None:
    with pytest.raises(ConfigError, match=r"digit: no such file, and no shipped space.*digits"):
        load_space("digit")


def test_the_stored_form_reads_back(tmp_path: Path) -> None:
    space = load_space("digits")
    again = SearchSpace(validate(SpaceConfig, space.to_tree()))
    assert again.to_tree() == space.to_tree()
    assert again.suggest(RandomTrial(1)) == space.suggest(RandomTrial(1))
    (tmp_path / "copy.yaml").write_text(again.text)
    assert load_space(tmp_path / "copy.yaml").to_tree() == space.to_tree()
    assert parse_yaml(space.text)["name"] == "digits"


@pytest.mark.parametrize(
    ("part", "given", "line"),
    [
        ("objectives", {"latency": "minimize"}, "objectives.latency = 'minimize': unknown key"),
        ("objectives", {"flops": "maximize"}, "objectives.flops = 'maximize': should be"),
        ("objectives", {"flops": None}, "objectives: need a cost beside top1: flops, num_params,"),
        ("limits", {"top1": {"min": 90.0}}, "limits.top1 = {min: 90.0}: is only known"),
        ("limits", {"latency": {"max": 1.0}}, "limits.latency = {max: 1.0}: unknown key"),
    ],
)  # fmt: skip
def test_objectives_and_limits_that_cannot_be(part: str, given: dict[str, Any], line: str) -> None:
    tree = {"name": "x", "model": {}, part: given}
    if part == "objectives":
        tree[part] = {"top1": "maximize", **given}
    with pytest.raises(ConfigError) as caught:
        validate(SpaceConfig, tree)
    assert str(caught.value).startswith(line)


def test_top1_has_to_be_an_objective() -> None:
    tree = {"name": "x", "model": {}, "objectives": {"flops": "minimize"}}
    with pytest.raises(ConfigError, match=r"objectives\.top1: is required"):
        validate(SpaceConfig, tree)


def test_the_order_of_objectives_means_nothing() -> None:
    """Stored values have one order, so that a resumed run cannot mix them up."""
    pairs = {"latency_ms": "minimize", "top1": "maximize", "flops": "minimize"}
    config = validate(SpaceConfig, {"name": "x", "model": {}, "objectives": pairs})
    assert config.objectives.costs == ("flops", "latency_ms")
    assert config.model_dump(mode="json")["objectives"] == pairs
    assert config.measured == ("latency_ms",)


def test_what_a_file_says_of_objectives_by_default() -> None:
    config = validate(SpaceConfig, {"name": "x", "model": {}})
    assert config.model_dump(mode="json")["objectives"] == {"top1": "maximize", "flops": "minimize"}
    assert not config.measured
    limited = validate(
        SpaceConfig, {"name": "x", "model": {}, "limits": {"latency_ms": {"max": 2.0}}}
    )
    assert limited.measured == ("latency_ms",)
