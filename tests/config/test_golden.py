"""What a search with a given seed draws stays as it was: questions, networks, keys and FLOPs.

The files in `golden/` were written before one table said when a field matters. `draws.json` holds
one digest a draw (`record` shows the draw itself), `networks.jsonl` random networks, in spellings
that also give fields which do not matter, with their keys. `spaces/` holds shipped spaces as they
were then, where they have changed since.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space
from vitnas.cost.closed_form import closed_form
from vitnas.nn.zoo import zoo_config, zoo_names

FOLDER = Path(__file__).parent / "golden"
GOLDEN = json.loads((FOLDER / "draws.json").read_text())


class Questions:
    """Answers at random, from its own generator, and notes every question with its answer."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.asked: list[list[Any]] = []

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        self.asked.append([name, list(choices), choices[self._random.randrange(len(choices))]])
        return self.asked[-1][-1]

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        self.asked.append([name, low, high, step, log, self._random.randrange(low, high + 1, step)])
        return int(self.asked[-1][-1])

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        self.asked.append([name, low, high, step, log, self._random.uniform(low, high)])
        return float(self.asked[-1][-1])


def space_then(name: str) -> Path | str:
    """The file of a shipped space when the golden files were written."""
    held = FOLDER / "spaces" / f"{name}.yaml"
    return held if held.is_file() else name


def record(space: SearchSpace, seed: int) -> dict[str, Any]:
    """A draw of a space: its questions in order, the network it led to, and the FLOPs."""
    trial = Questions(seed)
    config = space.suggest(trial)
    canonical = config.canonical().model_dump(mode="json", exclude_defaults=True)
    flops = closed_form(config).flops
    return {"asked": trial.asked, "canonical": canonical, "key": config.key, "flops": flops}


def digest(tree: Any) -> str:
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:8]


@pytest.mark.parametrize("name", sorted(GOLDEN["draws"]))
def test_a_seed_draws_what_it_drew(name: str) -> None:
    held, space = GOLDEN["draws"][name].split(), load_space(space_then(name))
    assert [digest(record(space, seed)) for seed in range(len(held))] == held


def test_the_models_of_the_papers_keep_their_keys() -> None:
    assert {name: zoo_config(name).key for name in zoo_names()} == GOLDEN["zoo"]


@pytest.mark.parametrize("line", (FOLDER / "networks.jsonl").read_text().splitlines())
def test_a_network_keeps_its_key_and_its_canonical_form(line: str) -> None:
    key, canonical, tree = json.loads(line)
    config = validate(ModelConfig, tree)
    assert (
        config.key,
        digest(config.canonical().model_dump(mode="json", exclude_defaults=True)),
    ) == (key, canonical)
