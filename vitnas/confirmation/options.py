"""The options of a confirmation, declared once. The module is light: `vitnas --help` reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from vitnas.engine.declare import Option, Options
from vitnas.errors import ConfigError


@dataclass(frozen=True)
class ConfirmOptions(Options):
    """What is trained for long, and how many at a time."""

    networks: Annotated[
        int, Option("Networks of the front, evenly over log FLOPs; one is the knee.", 1, 1000)
    ] = 3
    trial: Annotated[
        Sequence[int], Option("These trials instead of some of the front; repeatable.")
    ] = ()
    families: Annotated[
        int, Option("Of baselines against each network, the best at its FLOPs first.", 1, 100)
    ] = 2
    epochs: Annotated[
        int | None, Option("Of each training; default three times those of the run.", 1, 100_000)
    ] = None
    seeds: Annotated[int, Option("Trainings of each network.", 1, 100)] = 1
    workers: Annotated[
        int | None, Option("Trainings at a time; default one a core or GPU.", 1, 10_000)
    ] = None
    device: Annotated[str, Option("auto, cpu, cuda or cuda:1.")] = "auto"

    @staticmethod
    def check_more(values: Mapping[str, Any]) -> None:
        if any(number < 0 for number in values.get("trial", ())):
            raise ConfigError("a trial's number is 0 or more", address="trial")
