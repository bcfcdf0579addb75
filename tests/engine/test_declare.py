"""A class of options is read in one way, whatever it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from vitnas.engine.declare import BackendOptions, Option, Options, check, declared
from vitnas.errors import ConfigError


@dataclass(frozen=True)
class Few(Options):
    """How few."""

    number: Annotated[int, Option("How many.", 1, 5)] = 2
    name: Annotated[str | None, Option("Of what.")] = None

    @staticmethod
    def check_more(values: Mapping[str, Any]) -> None:
        if values.get("name") == "nothing":
            raise ConfigError("is no name", address="name", value="nothing")


@dataclass(frozen=True)
class Remote(BackendOptions):
    """How far."""

    number: Annotated[int, Option("How many.")] = 2


def test_an_option_has_a_type_a_default_and_a_help() -> None:
    number = declared(Few)["number"]
    assert (number.kind, number.default) == (int, 2)
    assert number.option.text() == "How many. [from 1 to 5]"
    assert Few.__doc__ == (
        "How few.\n\nAttributes:\n    number: How many. [from 1 to 5]\n    name: Of what."
    )


def test_the_options_of_a_base_come_last_and_are_checked_too() -> None:
    assert list(declared(Remote)) == [
        "number",
        "workers",
        "gpus_per_trial",
        "backend",
        "ray_address",
    ]
    assert "ray_address: A running Ray cluster" in (Remote.__doc__ or "")
    with pytest.raises(ConfigError, match="backend = 'slurm'"):
        Remote(backend="slurm")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"number": 6}, "--number = 6: should be less than or equal to 5 (nearest: 5)"),
        ({"numbr": 1}, "--numbr = 1: there is no such option (nearest: number)"),
        ({"name": "nothing"}, "--name = 'nothing': is no name"),
    ],
)
def test_a_mistake_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        check(Few, given, lambda name: f"--{name}")
    assert str(error.value) == said
