"""The JSON schemas that editors use accept what vitnas accepts."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given

from tests.strategies import model_configs
from vitnas.config.files import read_yaml
from vitnas.config.model import ModelConfig
from vitnas.config.schema import model_schema, space_schema
from vitnas.config.space import shipped_spaces

MODEL = jsonschema.Draft202012Validator(model_schema())
SPACE = jsonschema.Draft202012Validator(space_schema())


def test_both_are_valid_schemas() -> None:
    for validator in (MODEL, SPACE):
        validator.check_schema(validator.schema)


@given(model_configs())
def test_every_model_file_fits(config: ModelConfig) -> None:
    MODEL.validate(config.to_tree())


@pytest.mark.parametrize("name", sorted(shipped_spaces()))
def test_every_shipped_space_fits(name: str) -> None:
    SPACE.validate(read_yaml(shipped_spaces()[name]))


@pytest.mark.parametrize(
    "change",
    [
        {"img_sise": 8},
        {"groups": "8,2"},
        {"stages": [{"token_mixer": "msha", "embed_dim": 8}]},
        {"num_classes": {"choice": [1], "nam": "x"}},
        {"num_classes": {"choice": []}},
    ],
)
def test_mistakes_do_not(change: dict[str, Any]) -> None:
    model = {"img_size": 8, "stages": [{"token_mixer": "mhsa", "embed_dim": 8}], **change}
    assert not SPACE.is_valid({"name": "x", "model": model})


@pytest.mark.parametrize(("kind", "schema"), [("model", model_schema()), ("space", space_schema())])
def test_the_shipped_files_are_current(kind: str, schema: dict[str, Any]) -> None:
    """Made by `vitnas schema KIND > space/KIND.schema.json`."""
    folder = next(iter(shipped_spaces().values())).parent
    assert json.loads((folder / f"{kind}.schema.json").read_text()) == schema
