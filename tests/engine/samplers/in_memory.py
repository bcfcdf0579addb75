"""Searches without a file."""

from __future__ import annotations

from tests.engine.conftest import train
from vitnas.config.space import SearchSpace
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.rules import Rules
from vitnas.replay.simulation import MemoryStore


def controller_in_memory(space: SearchSpace, **options: object) -> Controller:
    rules = Rules(**{"num_trials": 24, **options})  # type: ignore[arg-type]
    return Controller(MemoryStore({}), space, rules)


def keys_of(controller: Controller) -> list[str]:
    while (job := controller.next()) is not None:
        train(controller, job)
    return [trial.key for trial in controller.trials]
