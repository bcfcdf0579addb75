"""The tests mirror the source: what `vitnas/a/b.py` does is tested in `tests/a/test_b.py`."""

from __future__ import annotations

from pathlib import Path

from tests.arrows import modules

TESTS = Path(__file__).parent

ELSEWHERE = {
    "__main__": "cli/test_streams.py",
    "cli.app": "cli/test_mistakes.py",
    "config.grammar": "config/test_space_mistakes.py",
    "config.network": "config/test_matters.py",
    "config.tables": "config/test_schema.py",
    "engine.decide.job": "engine/decide/test_second_chances.py",
    "engine.decide.rules": "engine/decide/test_controller.py",
}
"""Modules without a file of tests of their own yet, and the file that tests them. It only shrinks:
a new module gets its namesake."""


def namesake(module: str) -> Path:
    *rooms, name = module.split(".")
    return TESTS.joinpath(*rooms, f"test_{name.strip('_')}.py")


def test_every_module_has_a_namesake() -> None:
    names = {name for name, path in modules().items() if path.name != "__init__.py"}
    without = {name for name in names if not namesake(name).exists() and name != "__main__"}
    without |= names & {"__main__"}
    assert sorted(without) == sorted(ELSEWHERE), "take what has its file now off the list"


def test_what_is_tested_elsewhere_is_tested_there() -> None:
    assert not [place for place in ELSEWHERE.values() if not (TESTS / place).is_file()]
