"""The options of tune are declared once."""

from __future__ import annotations

from typing import Any

import pytest
import typer.main

import vitnas
from vitnas.cli import app
from vitnas.engine.declare import declared
from vitnas.engine.tuning.options import TuneOptions
from vitnas.errors import ConfigError


def test_the_command_line_has_every_option() -> None:
    command = typer.main.get_command(app).commands["tune"]  # type: ignore[attr-defined]
    shown = {parameter.name: parameter for parameter in command.params}
    assert set(shown) - set(declared(TuneOptions)) == {"space", "data", "out"}
    for name, (_, default, option) in declared(TuneOptions).items():
        assert shown[name].help == option.text()
        assert shown[name].default == default
        assert name in (TuneOptions.__doc__ or "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trials": 1}, "trials = 1: should be greater than or equal to 2 (nearest: 2)"),
        ({"network": 3}, "network = 3: there is no such option (nearest: networks)"),
        ({"minutes": -1.0}, "minutes = -1.0: should be greater than or equal to 0"),
    ],
)
def test_a_mistake_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        vitnas.tune("digits", **given)
    assert str(error.value).startswith(said)
