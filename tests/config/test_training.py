"""What may be said of the short training, and how it is made from a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.trees import TREE
from vitnas.config.data import DATA_FACTS
from vitnas.config.files import dump_yaml, validate
from vitnas.config.recipe import load_recipe
from vitnas.config.space import load_space
from vitnas.config.training import ProxyConfig, with_recipe
from vitnas.errors import ConfigError


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", 0),
        ("epochs", 2.5),
        ("batch_size", 1),
        ("lr", 0.0),
        ("lr", "1e-3"),
        ("weight_decay", -0.1),
        ("warmup_epochs", -1.0),
        ("label_smoothing", 1.0),
        ("grad_clip", -1.0),
        ("augment", "mixup"),
        ("train_fraction", 0.0),
        ("train_fraction", 1.1),
        ("eval_batch_size", 0),
        ("lr", float("nan")),
        ("warmup_epochs", float("inf")),
        ("grad_clip", float("inf")),
    ],
)
def test_a_proxy_out_of_range_is_refused(field: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(ProxyConfig, {field: value})
    assert caught.value.address == field


def test_configurations_are_frozen_and_hashable() -> None:
    assert hash(ProxyConfig()) == hash(ProxyConfig())
    with pytest.raises(ValueError):
        ProxyConfig().epochs = 3  # type: ignore[misc]


@given(st.sampled_from(sorted(DATA_FACTS)))
def test_auto_is_resolved_for_every_data_set(name: str) -> None:
    assert ProxyConfig().augment_for(name) not in ("auto", None)
    assert ProxyConfig(augment="none").augment_for(name) == "none"


def test_digits_are_never_mirrored_by_default() -> None:
    assert "flip" not in ProxyConfig().augment_for("digits")


def space_with(proxy: dict[str, Any], folder: Path, **changes: Any) -> Path:
    path = folder / "space.yaml"
    path.write_text(dump_yaml(TREE | {"proxy": proxy} | changes))
    return path


def proxy_of(proxy: dict[str, Any], folder: Path) -> ProxyConfig:
    return load_space(space_with(proxy, folder)).config.proxy


def test_a_recipe_is_shortened_with_its_warm_up_and_cool_down(tmp_path: Path) -> None:
    recipe, proxy = load_recipe("sret_t"), proxy_of({"recipe": "sret_t", "epochs": 30}, tmp_path)
    assert (proxy.epochs, proxy.warmup_epochs) == (30, recipe.warmup_epochs / 10)
    differing = {
        name for name in type(recipe).model_fields if getattr(recipe, name) != getattr(proxy, name)
    }
    assert differing <= {"epochs", "warmup_epochs", "cooldown_epochs"}
    assert proxy_of({"recipe": "sret_t"}, tmp_path).warmup_epochs == recipe.warmup_epochs


def test_own_fields_come_before_those_of_the_recipe(tmp_path: Path) -> None:
    own = {"warmup_epochs": 2.0, "mixup": 0.0, "distill": {"temperature": 3.0}}
    proxy = proxy_of({"recipe": "sret_distill", "epochs": 30, **own}, tmp_path)
    assert (proxy.warmup_epochs, proxy.mixup, proxy.cutmix) == (2.0, 0.0, 1.0)
    assert proxy.distill.model_dump(exclude_defaults=True) == {
        "teacher": "regnety_160.deit_in1k",
        "temperature": 3.0,
    }


def test_another_number_of_epochs_keeps_the_schedule_s_shape(tmp_path: Path) -> None:
    proxy = proxy_of({"recipe": "sret_t", "epochs": 30}, tmp_path)
    assert proxy.for_epochs(300).warmup_epochs == pytest.approx(5.0)
    late = proxy_of({"recipe": "sret_t", "epochs": 300, "no_augment_epochs": 15}, tmp_path)
    assert late.for_epochs(20).no_augment_epochs == 1
    plain = ProxyConfig(epochs=10, warmup_epochs=2.0)
    assert plain.for_epochs(20) == ProxyConfig(epochs=20, warmup_epochs=2.0)


def test_a_space_for_other_epochs_is_the_same_space_with_other_trainings() -> None:
    space = load_space("digits")
    assert space.for_epochs(None) is space
    longer = space.for_epochs(40)
    assert longer.config.proxy == space.config.proxy.for_epochs(40)
    assert longer.for_epochs(space.config.proxy.epochs).config == space.config


def test_a_space_at_another_rate_is_the_same_space_with_other_trainings() -> None:
    space = load_space("digits")
    assert space.at_rate(None) is space
    assert space.at_rate(0.1).config.proxy == space.config.proxy.at_rate(0.1)
    assert space.at_rate(0.1).at_rate(space.config.proxy.lr).config == space.config


def test_another_rate_keeps_the_shape_of_the_schedule() -> None:
    falling = ProxyConfig(lr=0.008, min_lr=0.002).at_rate(0.016)
    assert (falling.lr, falling.min_lr) == (0.016, 0.004)
    constant = ProxyConfig(lr=0.3, min_lr=0.3).at_rate(0.15)
    assert constant.lr == constant.min_lr == 0.15
    assert ProxyConfig(lr=0.01).at_rate(0.01) == ProxyConfig(lr=0.01)


def test_a_recipe_file_is_looked_for_beside_the_space(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("{lr: 0.25, epochs: 8, mixup: 0.4}\n")
    space = load_space(space_with({"recipe": "mine.yaml", "epochs": 4}, tmp_path))
    assert (space.config.proxy.lr, space.config.proxy.warmup_epochs) == (0.25, 0.5)
    (tmp_path / "mine.yaml").unlink()
    (tmp_path / "space.yaml").write_text(space.text)
    again = load_space(tmp_path / "space.yaml").config.proxy
    assert again == space.config.proxy.model_copy(update={"recipe": None})


def test_what_a_space_says_after_tuning_is_read_as_the_same(tmp_path: Path) -> None:
    """A default of ours is written out, where the recipe has another value."""
    space = load_space(space_with({"recipe": "sret_t", "epochs": 4}, tmp_path))
    space = space.with_proxy(space.config.proxy.model_copy(update={"batch_size": 32}))
    (tmp_path / "space.yaml").write_text(space.text)
    assert load_space(tmp_path / "space.yaml").config.proxy == space.config.proxy


def test_a_base_s_recipe_is_inherited(tmp_path: Path) -> None:
    base = load_space(space_with({"recipe": "deepvit", "epochs": 6}, tmp_path))
    view = tmp_path / "view.yaml"
    view.write_text("{name: view, extends: space.yaml}\n")
    assert load_space(view).config.proxy == base.config.proxy


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ({"recipe": "sret_z"}, r"space\.yaml: proxy\.recipe = 'sret_z': no such .*nearest: sret_"),
        ({"recipe": "gone.yaml"}, r"gone\.yaml: no such file"),
        ({"recipe": 5}, r"space\.yaml: proxy\.recipe = 5: should be text"),
        ({"recipe": "sret_t", "lr": 1e-7}, r"proxy\.min_lr = 1e-05: must not be above lr 1e-07"),
        ({"recipe": "sret_t", "mixap": 1.0}, r"proxy\.mixap = 1\.0: unknown key \(nearest: mixup"),
        ({"recipe": "sret_t", "epochs": "9"}, r"proxy\.epochs = '9'"),
        ({"recipe": "sret_mixed_depth"}, r"proxy\.mixed_depth = true: mixed depth needs recursion"),
    ],
)
def test_a_mistake_is_one_line(proxy: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = TREE["model"] | {"groups": "[1]"}
    with pytest.raises(ConfigError, match=message):
        load_space(space_with(proxy, tmp_path, model=model))


def test_a_name_alone_is_no_recipe(tmp_path: Path) -> None:
    """Outside of a file nothing looks it up, so that a training would have our defaults."""
    with pytest.raises(ConfigError, match="recipe = 'sret_t': is looked up where a file is read"):
        validate(ProxyConfig, {"recipe": "sret_t", "epochs": 3})
    assert with_recipe({"epochs": 3}, tmp_path / "s.yaml") == {"epochs": 3}


def test_only_what_is_on_is_told_of_the_fields_that_few_recipes_have() -> None:
    assert list(ProxyConfig().told()) == [
        *("epochs", "batch_size", "optimizer", "lr", "weight_decay", "warmup_epochs"),
        *("label_smoothing", "grad_clip", "augment", "train_fraction", "eval_batch_size"),
    ]
    assert ProxyConfig(mixup=0.5).told()["mixup"] == 0.5


@pytest.mark.parametrize(
    ("space", "recipe"),
    [
        ("bvit_table1", "bvit_5m"),
        ("deepvit_fig9", "deepvit"),
        ("ska_table5", "ska_table5"),
        ("sret_fig5", "sret_t"),
        ("sret_table7", "sret_t"),
    ],
)
def test_a_paper_s_space_trains_by_the_paper_s_recipe(space: str, recipe: str) -> None:
    proxy, whole = load_space(space).config.proxy, load_recipe(recipe)
    assert proxy.recipe == recipe
    assert {name: getattr(proxy, name) for name in type(whole).model_fields} == dict(whole)
