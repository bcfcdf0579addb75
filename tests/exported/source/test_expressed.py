"""What no template reads is named, so that no model.py computes something else."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import pytest

from tests.nn.networks import vit
from tests.report.runs import tree
from tests.strategies import random_config
from vitnas.config.files import validate
from vitnas.config.mixers import MIXERS as KNOWN
from vitnas.config.model import ModelConfig
from vitnas.config.network import Network
from vitnas.config.parts import Frozen
from vitnas.config.stage import StageConfig
from vitnas.exported.source.expressed import MIXERS, NETWORK, STAGE, unexpressed


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_are_expressed(seed: int) -> None:
    assert unexpressed(random_config(seed)) is None


def test_an_image_of_five_channels_has_no_file_to_be_read_from() -> None:
    assert unexpressed(vit(in_chans=5)) == "in_chans = 5"


def test_another_packages_mixer_is_named() -> None:
    config = validate(ModelConfig, tree("tests.test_testing:Good"))
    assert unexpressed(config) == "stages[0].token_mixer = 'Good'"


@pytest.mark.parametrize(
    ("table", "config", "field", "said"),
    [
        (STAGE, {"mask_diagonal": True}, "mask_diagonal", "stages[0].mask_diagonal = true"),
        (NETWORK, {}, "class_token", "class_token = true"),
    ],
)
def test_a_field_that_no_table_has_is_named(
    table: dict[str, Any],
    config: dict[str, Any],
    field: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if the field were newer than the templates."""
    network = vit()
    stage = {**network.to_tree()["stages"][0], **config}
    monkeypatch.delitem(table, field)
    assert unexpressed(vit(stages=[stage])) == said


def test_a_value_that_no_table_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NETWORK, "stem.kind", ("conv",))
    config = validate(ModelConfig, tree() | {"stem": {"kind": "shifted", "stride": 4}})
    assert unexpressed(config) == "stem.kind = 'shifted'"


def choices(model: type[Frozen], prefix: str = "") -> dict[str, tuple[Any, ...]]:
    """The values of each field that has a list of them, by address."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Frozen) and kind is not StageConfig:
                found |= choices(kind, f"{prefix}{name}.")
            elif get_origin(kind) is Literal:
                found[prefix + name] = get_args(kind)
    return found


def test_the_tables_have_no_value_that_the_language_lacks() -> None:
    """The other way round a value is refused, until a template and the table have it."""
    for table, model in ((NETWORK, Network), (STAGE, StageConfig)):
        for address, values in choices(model).items():
            listed = table.get(address)
            assert listed is None or set(listed) - {None} <= set(values), address
    assert set(MIXERS) <= set(KNOWN)
