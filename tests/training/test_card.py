"""The model card of a long training says what it was, and no more."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import vitnas
from vitnas.config.data import DataConfig
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.exported.design import build_design
from vitnas.training.card import training_card
from vitnas.training.images import Images
from vitnas.training.plan import Plan

LOG = [{"epoch": 1, "top1": 40.0}, {"epoch": 2, "top1": 61.234}]


@pytest.fixture
def plan(tiny_config: ModelConfig) -> Plan:
    return Plan(tiny_config, DataConfig(), Recipe(epochs=2), "mine", seed=7)


def test_the_numbers_are_those_of_the_end(plan: Plan, digits: Images) -> None:
    text = training_card(plan, digits, LOG, 58.5, Path("nets/one"))
    assert text.startswith("# network: 61.23 % top-1 on the scoring split after 2 epochs, ")
    for part in (
        "| top-1 on the scoring split | 61.23 % |",
        "| top-1 on the test split | 58.50 % |",
        "| its interval, from the number of images alone | 55.",
        "of 359 images) |",
        "| input | 1 x 8 x 8, floats |",
        "- trained on ",
        f"torch {torch.__version__}"[:9],
        "Trained for 2 epochs by the recipe `mine`, seed 7; it starts from fresh weights.",
        "- data: name digits, val_fraction 0.2",
    ):
        assert part in text, part
    assert f"mean {digits.mean[0]:.4f}; deviation" in text.replace("\n", " ")
    assert "None" not in text


def test_what_was_not_done_is_not_told(plan: Plan, digits: Images) -> None:
    text = training_card(plan, digits, LOG, None, Path("one"))
    for part in ("test split", "Taught by", "RandAugment", "moving average"):
        assert part not in text, part


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"distill": {"teacher": "other"}}, "Taught by `other` instead of the labels"),
        ({"rand_augment": "rand-m9"}, "is for images in folders and was not used"),
        ({"ema_decay": 0.99}, "a moving average with decay 0.99"),
    ],
)
def test_what_a_recipe_adds_is_told(
    plan: Plan, digits: Images, changes: dict[str, object], part: str
) -> None:
    more = replace(plan, recipe=Recipe.model_validate({"epochs": 2, **changes}))
    assert part in training_card(more, digits, LOG, None, Path("one"))


def test_first_weights_are_named(plan: Plan, digits: Images) -> None:
    text = training_card(plan, digits, LOG, None, Path("one"), start="starts from older/net")
    assert "seed 7; it starts from older/net." in text


def test_the_example_runs(plan: Plan, digits: Images, monkeypatch: pytest.MonkeyPatch) -> None:
    text = training_card(plan, digits, LOG, None, Path("nets/one"))
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    loaded: list[str] = []

    def load(folder: str) -> torch.nn.Module:
        loaded.append(folder)
        return build_design(plan.config).eval()

    monkeypatch.setattr(vitnas, "load", load)
    names: dict[str, torch.Tensor] = {}
    exec(found[1], names)
    assert loaded == ["nets/one"]
    assert names["scores"].shape == (1, 10)
