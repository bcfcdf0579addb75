"""The space language: what is asked, what is on offer, and what a wrong file gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from optuna.trial import FixedTrial

from tests.config.trees import space_of, stage
from vitnas.config.axes import Choice
from vitnas.config.data import DataConfig
from vitnas.config.differences import differences
from vitnas.config.files import parse_yaml, validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, SpaceConfig, load_space, shipped_spaces
from vitnas.config.trials import RandomTrial
from vitnas.cost.closed_form import closed_form
from vitnas.errors import ConfigError

ABLATIONS = {
    "bvit_table1": (6, 6),
    "bvit_table2": (4, 4),
    "deepvit_fig1": (8, 8),
    "deepvit_fig9": (13, 7),
    "deepvit_table1": (4, 4),
    "deepvit_table3": (4, 4),
    "deepvit_table5": (5, 5),
    "ska_fig3": (10, 10),
    "ska_table4": (5, 5),
    "ska_table5": (7, 7),
    "sret_fig5": (16, 7),
    "sret_table12": (4, 3),
    "sret_table13": (4, 4),
    "sret_table14": (5, 5),
    "sret_table3": (7, 7),
    "sret_table7": (12, 9),
}
"""Networks of each ablation of the papers, and of its small twin."""


@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_every_shipped_space_draws_networks(name: str) -> None:
    space = load_space(name)
    assert space.name == name.replace("/", "_")
    drawn = [space.suggest(RandomTrial(seed)) for seed in range(50)]
    assert len({config.key for config in drawn}) >= 3


def test_all_the_spaces_of_the_papers_are_shipped() -> None:
    for name, (count, in_small) in ABLATIONS.items():
        assert len({config.key for config in load_space(name).networks()}) == count
        assert len({config.key for config in load_space(f"small/{name}").networks()}) == in_small
    assert {"digits", "hybrid_cifar", "hybrid_imagenet"} <= set(shipped_spaces())


@pytest.mark.parametrize("name", ABLATIONS)
def test_a_small_twin_s_command_trains_each_of_its_rows(name: str) -> None:
    text = shipped_spaces()[f"small/{name}"].read_text(encoding="utf-8")
    assert f"vitnas search small/{name} --trials {ABLATIONS[name][1]} --sampler random" in text
    assert load_space(f"small/{name}").config.data.name == "fashion_mnist"


def rows_of(name: str, axis: str) -> dict[Any, ModelConfig]:
    """The networks of an ablation by the answer to its only question."""
    space = load_space(name)
    searched = space.axes[0]
    assert isinstance(searched, Choice)
    return {label: space.suggest(FixedTrial({axis: label})) for label in searched.labels}


def test_table_7_has_the_permutation_without_its_inverse() -> None:
    """The table's first row, P, was missing."""
    rows = rows_of("sret_table7", "row")
    alone = rows.pop("TL [8,8][4,4][1,1] P")
    whole = rows["TL [8,8][4,4][1,1]"]
    changed = differences(whole.model_dump(), alone.model_dump())
    assert list(changed) == ["permute_inverse: true -> false"]
    small = rows_of("small/sret_table7", "row")
    assert not small["[8,8][4,4][1,1] P"].permute_inverse


def test_table_13_has_the_network_of_table_3() -> None:
    """Both print 74.7 and 75.2 %: with a class token, without the stem of convolutions."""
    changes, rows = rows_of("sret_table13", "residual"), rows_of("sret_table3", "row")
    assert changes["plain"].key == rows["nll"].key
    assert changes["lrc"].key == rows["nll_lrc"].key


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
        ({"in_chans": 3}, "model.in_chans = 3: digits has 1 channel (nearest: 1)"),
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


def test_the_text_is_that_of_the_file_only_where_the_file_says_it_all(tmp_path: Path) -> None:
    """A run's space.yaml names the run's images, not those of the space that it was made from."""
    space = load_space("digits")
    assert "#" in space.text
    other = load_space("digits", DataConfig(name="fashion_mnist"))
    (tmp_path / "space.yaml").write_text(other.text)
    again = load_space(tmp_path / "space.yaml")
    assert again.to_tree() == other.to_tree()
    assert again.config.data.name == "fashion_mnist"
    mine = tmp_path / "mine.yaml"
    mine.write_text(space.text)
    read = load_space(mine)
    mine.write_text("name: [")
    assert parse_yaml(read.text)["name"] == "digits"


def test_a_space_names_networks_as_changes_to_its_model(tmp_path: Path) -> None:
    space = load_space("images_64")
    assert len(space.config.seed_configs) > 10
    sizes = [
        closed_form(space.seed_network(n)).flops for n in range(len(space.config.seed_configs))
    ]
    assert sizes == sorted(sizes), "the cheapest first"
    assert sizes[0] < 0.5e6 < 10e6 < sizes[-1]
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nextends: images_64\nmodel: {num_classes: 7, img_size: 96}\n")
    mine = load_space(path)
    network = mine.seed_network(5)
    assert (network.num_classes, network.image_hw) == (7, (96, 96))
    assert network.stages == space.seed_network(5).stages
    (tmp_path / "copy.yaml").write_text(mine.text)
    assert load_space(tmp_path / "copy.yaml").config == mine.config.model_copy(
        update={"extends": None}
    )
    assert "seed_configs" not in mine.to_tree(), "a run of an older file is of the same space"
