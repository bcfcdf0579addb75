"""The tests mirror the source: what `vitnas/a/b.py` does is tested in `tests/a/test_b.py`."""

from __future__ import annotations

from pathlib import Path

from tests.arrows import modules

TESTS = Path(__file__).parent

ELSEWHERE = {
    "engine.decide.rules": "engine/decide/test_controller.py",
}
"""Modules without a file of tests of their own, and the file that tests them.

`rules` only holds what a controller is given: what a rule means is what the controller does.
A new module gets its namesake.
"""


def namesake(module: str) -> Path:
    *rooms, name = module.split(".")
    return TESTS.joinpath(*rooms, f"test_{name.strip('_')}.py")


def test_every_module_has_a_namesake() -> None:
    names = {name for name, path in modules().items() if path.name != "__init__.py"}
    without = {name for name in names if not namesake(name).exists()}
    assert sorted(without) == sorted(ELSEWHERE), "take what has its file now off the list"


def test_what_is_tested_elsewhere_is_tested_there() -> None:
    assert not [place for place in ELSEWHERE.values() if not (TESTS / place).is_file()]
