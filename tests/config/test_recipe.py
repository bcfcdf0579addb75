"""Recipes: what the papers' files say, what a file may say, and what a network needs for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from vitnas.config.files import dump_yaml, read_yaml
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import (
    FOLDER,
    Recipe,
    check_recipe_fits,
    comparable_maps,
    load_recipe,
    recipe_names,
)
from vitnas.config.schema import recipe_schema
from vitnas.errors import ConfigError
from vitnas.nn.zoo import zoo_config

PRINTED: dict[str, dict[str, Any]] = {
    # SReT, Table 8
    "sret_t": {"epochs": 300, "batch_size": 1024, "lr": 1e-3, "weight_decay": 0.05},
    "sret_tl": {"warmup_epochs": 5.0, "label_smoothing": 0.1, "drop_path_rate": 0.1},
    "sret_s": {"batch_size": 512, "lr": 1e-3, "drop_path_rate": 0.2, "optimizer": "adamw"},
    # Tables 9 and 10
    "sret_distill": {"epochs": 300, "batch_size": 1024, "lr": 1e-3, "optimizer": "adamw"},
    "sret_finetune": {"weight_decay": 0.0, "lr": 5e-6},
    # DeepViT, Section 5.1 and the supplement
    "deepvit": {"epochs": 300, "batch_size": 256, "lr": 5e-4, "warmup_epochs": 3.0},
    # BViT, Sections IV-A and IV-E
    "bvit_5m": {"epochs": 300, "batch_size": 1280, "lr": 5e-4 * 1280 / 512, "weight_decay": 0.05},
    "bvit_22m": {"batch_size": 512, "lr": 5e-4},
    "bvit_finetune": {"epochs": 30, "batch_size": 1024, "lr": 1e-5, "min_lr": 1e-5},
    # MetaFormer's scripts, for SKA
    "caformer_s18": {"optimizer": "lamb", "lr": 8e-3, "batch_size": 4096, "drop_path_rate": 0.15},
    "ska_table5": {"epochs": 160, "cooldown_epochs": 10.0},
}


def network(**changes: Any) -> ModelConfig:
    tree: dict[str, Any] = {
        "img_size": 8,
        "in_chans": 1,
        "num_classes": 10,
        "stem": {"kind": "patch", "stride": 2},
        "stages": [{"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8, "depth": 3}],
    }
    return ModelConfig.model_validate(tree | changes)


@pytest.mark.parametrize("name", recipe_names())
def test_a_shipped_recipe_is_read_and_says_where_it_is_from(name: str) -> None:
    assert isinstance(load_recipe(name), Recipe)
    head = (FOLDER / f"{name}.yaml").read_text().splitlines()[0]
    assert head.startswith(f"# {name}: ")


@pytest.mark.parametrize("name", recipe_names())
def test_the_json_schema_takes_it(name: str) -> None:
    validator = jsonschema.Draft202012Validator(recipe_schema())
    validator.check_schema(validator.schema)
    tree = read_yaml(FOLDER / f"{name}.yaml")
    validator.validate(tree)
    assert not validator.is_valid({**tree, "learning_rate": 1.0})
    assert not validator.is_valid({**tree, "lr": 2.0})


@pytest.mark.parametrize("name", PRINTED)
def test_a_papers_recipe_has_the_papers_values(name: str) -> None:
    recipe = load_recipe(name)
    assert {field: getattr(recipe, field) for field in PRINTED[name]} == PRINTED[name]


def test_the_papers_special_losses_are_in_their_recipes() -> None:
    assert load_recipe("sret_distill").distill.teacher == "regnety_160.deit_in1k"
    assert load_recipe("sret_mixed_depth").mixed_depth
    assert load_recipe("deepvit_penalty").similarity_penalty.blocks == 12


def test_warm_up_of_bvit_is_5000_steps_of_imagenet() -> None:
    for name in ("bvit_5m", "bvit_22m"):
        recipe = load_recipe(name)
        steps = recipe.warmup_epochs * 1_281_167 / recipe.batch_size
        assert steps == pytest.approx(5000, rel=0.01)


def test_a_recipe_survives_the_way_through_a_file(tmp_path: Path) -> None:
    recipe = load_recipe("sret_distill")
    path = tmp_path / "mine.yaml"
    path.write_text(dump_yaml(recipe.model_dump(mode="json", exclude_defaults=True)))
    assert load_recipe(path) == load_recipe(str(path)) == recipe


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ("lr: 2.0", r"lr = 2\.0: .*less than or equal to 1 \(nearest: 1\.0\)"),
        ("lr: 1e-3", r"lr = '1e-3': YAML reads this as text.*\(nearest: 1\.0e-3\)"),
        ("learning_rate: 0.1", r"learning_rate = 0\.1: unknown key"),
        ("warmup_epoch: 1.0", r"warmup_epoch = 1\.0: unknown key \(nearest: warmup_epochs\)"),
        ("{lr: 0.1, min_lr: 0.2}", r"min_lr = 0\.2: must not be above lr 0\.1 \(nearest: 0\.1\)"),
        ("optimizer: adam", r"optimizer = 'adam': .*\(nearest: adamw\)"),
        ("ema_decay: 1.0", r"ema_decay = 1\.0: .*less than 1"),
        ("mixup: -1.0", r"mixup = -1\.0: .*\(nearest: 0\.0\)"),
        ("rand_augment: autoaugment", r"rand_augment = 'autoaugment'"),
        ("rand_augment: rand-x3", r"rand_augment = 'rand-x3'"),
        ("rand_augment: rand-m9.5", r"rand_augment = 'rand-m9\.5'"),
        (f"rand_augment: rand-m{'9' * 5000}", r"rand_augment = 'rand-m999"),
        ("similarity_penalty: {weight: -1.0}", r"similarity_penalty\.weight = -1\.0: .*nearest"),
        ("similarity_penalty: {lambda: 1.0}", r"similarity_penalty\.lambda = 1\.0: unknown key"),
        (
            "{grad_checkpointing: true, similarity_penalty: {weight: 0.5}}",
            r"grad_checkpointing = true: cannot be with similarity_penalty.*\(nearest: false\)",
        ),
        (
            "{rand_augment: rand-m9, color_jitter: 0.4}",
            r"color_jitter = 0\.4: is left out beside rand_augment rand-m9.*\(nearest: 0\)",
        ),
        ("distill: {weights: w.pth}", r"distill\.weights = 'w\.pth': needs a teacher"),
        ("distill: {teacher: t, temperature: 0.0}", r"distill\.temperature = 0\.0: .*greater"),
    ],
)
def test_a_mistake_names_file_address_value_and_rule(
    tmp_path: Path, tree: str, message: str
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(tree + "\n")
    with pytest.raises(ConfigError, match=message) as caught:
        load_recipe(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sret_destill", r"recipe = 'sret_destill': no such recipe.*\(nearest: sret_distill\)"),
        ("gone.yaml", "gone.yaml: no such file"),
        ("folder/small", "folder/small: no such file"),
    ],
)
def test_an_unknown_recipe_names_the_nearest(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_recipe(name)


def test_mixed_depth_needs_recursion() -> None:
    recipe = Recipe(mixed_depth=True)
    with pytest.raises(ConfigError, match="mixed_depth = true: mixed depth needs recursion"):
        check_recipe_fits(recipe, network())
    check_recipe_fits(recipe, network(groups="[1,1]"))


def test_a_penalty_needs_two_maps_of_equal_size_in_a_row() -> None:
    recipe = Recipe.model_validate({"similarity_penalty": {"weight": 0.1, "blocks": 1}})
    check_recipe_fits(recipe, network())
    for stages in (
        [{"token_mixer": "dwconv", "embed_dim": 16, "kernel_size": 3, "depth": 3}],
        [{"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8}],
        [{"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8, "groups": [2, 1], "depth": 3}],
        [{"token_mixer": "mhsa", "embed_dim": 16, "head_dim": d} for d in (8, 4)],
    ):
        with pytest.raises(ConfigError, match=r"similarity_penalty\.weight = 0\.1: .*no two maps"):
            check_recipe_fits(recipe, network(stages=stages))


def test_pairs_are_counted_as_printed_in_equation_6() -> None:
    """l = 0..B are B + 1 pairs, as far as the network goes."""
    vit = zoo_config("vit_16b")
    assert [comparable_maps(vit, blocks) for blocks in (0, 4, 14, 99)] == [1, 5, 15, 15]
    star = zoo_config("sret_star_t")  # 4, 10 and 6 passes, and other maps in each stage
    assert comparable_maps(star, 99) == 3 + 9 + 5
    assert comparable_maps(zoo_config("sret_t"), 99) == 5  # g = 1 in the last stage alone


def test_pairs_follow_the_order_of_execution() -> None:
    stage = {"token_mixer": "mhsa", "embed_dim": 16, "head_dim": 8, "groups": [2, 1], "depth": 3}
    loops = [network(stages=[stage | {"loop": loop}]) for loop in ("internal", "external")]
    assert [comparable_maps(config, 99) for config in loops] == [0, 2]


POLICIES = ["rand", "rand-m9-mstd0.5-inc1", "rand-n3-p0.5-mmax20-mstd101", "rand-m0-t3a-inc0"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_that_is_taken_is_one_of_timm(policy: str) -> None:
    from timm.data.auto_augment import rand_augment_transform

    assert Recipe(rand_augment=policy).rand_augment == policy
    assert rand_augment_transform(policy, {}).ops
