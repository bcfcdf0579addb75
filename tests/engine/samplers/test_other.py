"""Samplers of other packages: Optuna's by their paths, and one line for whatever is wrong."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import optuna
import pytest
from optuna.samplers import CmaEsSampler, NSGAIIISampler, RandomSampler

from tests.engine.conftest import SMALL, make_space
from vitnas.engine.samplers import make_sampler
from vitnas.engine.search import run_search
from vitnas.errors import ConfigError

NAME = "sampler_package:mine"


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module `sampler_package` whose `mine` gives what a test puts there."""
    module = ModuleType("sampler_package")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def drawn(seed: int) -> list[Any]:
    """The first ten numbers of Optuna's sampler of this seed."""
    sampler = make_sampler("optuna.samplers:RandomSampler", seed, make_space())
    study = optuna.create_study(directions=["maximize", "minimize"], sampler=sampler)
    return [study.ask().suggest_float("x", 0.0, 1.0) for _ in range(10)]


def test_a_sampler_of_optuna_has_the_seed_and_no_other_argument() -> None:
    """TPE takes the seed, given by its place, for another option."""
    made = make_sampler("optuna.samplers:NSGAIIISampler", 3, make_space())
    assert type(made) is NSGAIIISampler
    assert drawn(3) == drawn(3) != drawn(4)


class Broken(RandomSampler):
    def sample_independent(self, *arguments: Any) -> Any:
        raise ValueError("no\nidea")


MISTAKES: list[tuple[Any, str]] = [
    (lambda seed, space: 1 / 0, "fails: ZeroDivisionError: division by zero"),
    (lambda: RandomSampler(), r"fails: TypeError: .* takes 0 positional arguments"),
    (lambda seed, space: None, "gives NoneType, not a sampler of Optuna's kind"),
    (lambda seed, space: CmaEsSampler(), "fails: ValueError: .*CmaEsSampler cannot be used"),
    (lambda seed, space: Broken(), "fails: ValueError: no idea"),
]


@pytest.mark.parametrize(("function", "message"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_a_mistake_is_one_line(given: Any, function: Any, message: str) -> None:
    given.mine = function
    with pytest.raises(ConfigError, match=f"sampler = '{NAME}': {message}") as caught:
        make_sampler(NAME, 0, make_space())
    assert "\n" not in str(caught.value)


def test_it_is_said_before_a_search_writes_anything(given: Any, tmp_path: Path) -> None:
    given.mine = lambda seed, space: CmaEsSampler()
    options = replace(SMALL, sampler=NAME)
    with pytest.raises(ConfigError, match="CmaEsSampler cannot be used"):
        run_search(make_space(), tmp_path / "run", options)
    assert not (tmp_path / "run").exists()
