"""Where a network lies in a space: every draw is found again, in whatever spelling."""

from __future__ import annotations

from typing import Any

import pytest
from optuna.trial import FixedTrial

from tests.config.trees import BASE, TREE, space_of, stage
from tests.engine.conftest import make_space
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space, shipped_spaces
from vitnas.config.trials import RandomTrial
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.engine.decide.locate import locate, locate_by
from vitnas.errors import ConfigError
from vitnas.nn.zoo import zoo_config, zoo_names


@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_every_draw_of_every_space_is_found_again(name: str) -> None:
    space = load_space(name)
    found = 0
    for seed in range(8):
        config = space.suggest(RandomTrial(seed))
        if over_limits(closed_form(config), space.config.limits):
            continue
        for spelling in (config, validate(ModelConfig, config.to_tree()), config.canonical()):
            candidate = locate(space, spelling, "test")
            assert candidate.key == config.key
            again = locate_by(space, candidate.params, "test")
            assert again is not None
            assert again.key == config.key
        found += 1
    assert found


def test_models_of_a_paper_are_found_in_the_paper_s_space() -> None:
    space = load_space("sret_table7")
    row = {"row": "T [8,2][4,1][1,1]"}
    assert locate(space, zoo_config("sret_t"), "sret_t").params == row
    space = load_space("ska_table5")
    assert locate(space, zoo_config("cskaformer_s18"), "cskaformer_s18")


SPACES = {224: ["papers_224", "papers_224_vit"], 32: ["papers_32", "papers_32_vit"]}
"""The spaces of the papers' networks, by the size of their images."""
ZOO = [name for name in zoo_names() if zoo_config(name).img_size in SPACES]


@pytest.fixture(scope="module")
def spaces() -> dict[str, SearchSpace]:
    return {name: load_space(name) for names in SPACES.values() for name in names}


@pytest.mark.parametrize("name", ZOO)
def test_every_model_of_the_zoo_is_a_point(name: str, spaces: dict[str, SearchSpace]) -> None:
    config = zoo_config(name)
    size = config.img_size
    assert isinstance(size, int)
    named = SPACES[size][len(config.stages) == 1]
    candidate = locate(spaces[named], config, name)
    found = spaces[named].suggest(FixedTrial(dict(candidate.params)))
    assert closed_form(found).num_params == closed_form(config).num_params


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("sret_t", {"stages.0.loop": "external", "stages.2.loop": "external"}),
        ("cskaformer_s18", {"stages.1.key_kernel": 5}),
        ("caformer_b36", {"stages.2.token_mixer": {"pattern": ["ska", "mhsa"]}}),
        ("caformer_b36", {"stages.2.token_mixer": {"pattern": ["ska"], "last": "mhsa"}}),
        ("caformer_s18", {"broad.gamma": 0.4, "broad.layers": "every:2"}),
        ("bvit_5m", {"broad.layers": "last:4"}),
        ("vit_16b", {"groups": "[1,1]", "stages.0.loop": "external"}),
        (
            "ska_vit_small_32",
            {
                "stem.kind": "shifted",
                "temperature.kind": "learnable",
                "stages.0.mask_diagonal": True,
                "stages.0.head_dim": None,
                "stages.0.num_heads": 10,
                "stages.0.attn_dim": 640,
            },
        ),
    ],
)
def test_what_the_papers_leave_to_a_search_is_a_point(
    model: str, changes: dict[str, Any], spaces: dict[str, SearchSpace]
) -> None:
    tree = zoo_config(model).to_tree()
    for address, value in changes.items():
        *parts, last = address.split(".")
        holder: Any = tree
        for part in parts:
            holder = holder[int(part)] if part.isdigit() else holder.setdefault(part, {})
        holder[last] = value
    config = validate(ModelConfig, tree)
    named = SPACES[tree["img_size"]][len(config.stages) == 1]
    assert locate(spaces[named], config, model).params


@pytest.mark.parametrize(
    "name",
    ["sret_t", "sret_star_s", "caformer_s18", "skaformer_s18", "caformer_s18_cska_stage2"],
)
def test_the_papers_small_networks_are_points_of_hybrid_imagenet(name: str) -> None:
    """No model of the zoo was: it had four stages, its first one `dwconv`, and fixed widths."""
    assert locate(load_space("hybrid_imagenet"), zoo_config(name), name).params


@pytest.mark.parametrize(
    ("name", "size", "stride"), [("hybrid_imagenet", 224, 4), ("hybrid_cifar", 32, 2)]
)
def test_the_hybrid_that_ska_and_sret_suggest_is_a_point(name: str, size: int, stride: int) -> None:
    """Convolution, static keys, sliced groups, attention; groups of all stages were one choice."""
    looped = {"token_mixer": "mhsa", "head_dim": 32, "nll_ratio": 1.0}
    stages = [
        {"token_mixer": "dwconv", "depth": 2, "embed_dim": 64},
        {"token_mixer": "cska", "depth": 1, "embed_dim": 64, "head_dim": 32},
        {**looped, "depth": 6, "embed_dim": 128, "groups": [4, 1]},
        {**looped, "depth": 2, "embed_dim": 256, "groups": [1, 1]},
    ]
    stem = {"kind": "metaformer", "stride": stride}
    tree = {"img_size": size, "stem": stem, "downsample": "metaformer", "stages": stages}
    assert locate(load_space(name), validate(ModelConfig, tree), "hybrid").params


def test_layers_of_broad_attention_are_found_by_what_they_collect() -> None:
    """Of two layers `every:2` is the last one, in another word than the space has."""
    searched = {"gamma": 0.4, "layers": {"choice": ["all", "every:2"]}}
    space = space_of({"broad": searched, "stages": [stage(depth=2)]})
    config = validate(
        ModelConfig,
        BASE | {"broad": {"gamma": 0.4, "layers": "last:1"}, "stages": [stage(depth=2)]},
    )
    assert locate(space, config, "mine").params == {"broad.layers": "every:2"}


def test_classes_sizes_and_rates_are_the_space_s() -> None:
    config = validate(ModelConfig, TREE["model"] | {
        "groups": "[1]",
        "img_size": 16,
        "num_classes": 7,
        "drop_path_rate": 0.3,
        "stages": [{"token_mixer": "mhsa", "depth": 2, "embed_dim": 32, "head_dim": 16,
                    "mlp_ratio": 2.0}],
    })  # fmt: skip
    candidate = locate(make_space(), config, "mine.yaml")
    assert candidate.origin == "mine.yaml"
    assert candidate.params["stages[0].embed_dim"] == 32
    assert candidate.key != config.key


def mine(**changes: Any) -> ModelConfig:
    stage = {"token_mixer": "mhsa", "depth": 2, "embed_dim": 32, "head_dim": 16, "mlp_ratio": 2.0}
    return validate(ModelConfig, TREE["model"] | {"groups": "[1]", "stages": [stage | changes]})


def test_what_is_not_in_the_space_is_said_with_what_differs() -> None:
    message = r"mine: is not in the space tiny: stages\[0\]\.embed_dim: 16 -> 64"
    with pytest.raises(ConfigError, match=message):
        locate(make_space(), mine(embed_dim=64), "mine")
    message = r"mine: is not in the space tiny: stages\[0\]\.depth: 1 -> 4"
    with pytest.raises(ConfigError, match=message):
        locate(make_space(), mine(depth=4), "mine")


def test_what_is_outside_the_limits_is_not_a_candidate() -> None:
    space = make_space(limits={"flops": {"max": 1.0e5}})
    with pytest.raises(ConfigError, match=r"mine: flops .* is above the limit 100 k"):
        locate(space, mine(), "mine")


def test_answers_to_other_questions_lead_nowhere() -> None:
    space = make_space()
    params = dict(locate(space, mine(), "mine").params)
    assert locate_by(space, params, "x") is not None
    assert locate_by(space, params | {"stages[0].depth": 9}, "x") is None
    assert locate_by(space, params | {"stages[0].mlp_ratio": 7.0}, "x") is None
    del params["stages[0].depth"]
    assert locate_by(space, params, "x") is None
