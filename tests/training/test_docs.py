"""docs/training.md: its examples are files that work, and its table has every recipe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vitnas.config.files import parse_yaml, validate
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe, recipe_names
from vitnas.training.device import resolve_device
from vitnas.training.final import FinalTraining
from vitnas.training.images import Images
from vitnas.training.proxy import fresh_model

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "training.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(# (\w+): .*?)```", PAGE, flags=re.DOTALL)


def test_every_recipe_is_in_the_table() -> None:
    table = PAGE[PAGE.index("## Recipes") : PAGE.index("## Similarity")]
    assert {name for name in recipe_names() if f"`{name}`" in table} == set(recipe_names())


@pytest.mark.parametrize(("text", "kind"), EXAMPLES, ids=[kind for _, kind in EXAMPLES])
def test_an_example_runs(text: str, kind: str, digits: Images) -> None:
    assert {kind for _, kind in EXAMPLES} == {"recipe", "model"}
    model = next(text for text, kind in EXAMPLES if kind == "model")
    config = validate(ModelConfig, parse_yaml(model))
    recipe = validate(Recipe, parse_yaml(text)) if kind == "recipe" else Recipe()
    short = recipe.model_copy(update={"epochs": 1, "train_fraction": 0.1})
    network = fresh_model(config, 0, resolve_device("cpu"))
    (result,) = FinalTraining(network, short, digits, 0)
    assert result.loss > 0
