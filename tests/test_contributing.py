"""CONTRIBUTING.md names every place that an addition touches, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.arrows import modules

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (an? [\w ]+) \| (`.+`) \| `(\w+)` \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def said(tree: ast.AST) -> Iterator[str]:
    """Names that a file's code gives to things, and whole texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


@pytest.mark.slow
@pytest.mark.parametrize(("what", "places", "name"), ROWS, ids=[row[0] for row in ROWS])
def test_an_addition_touches_these_places(what: str, places: str, name: str) -> None:
    listed = {f"vitnas/{place.replace('NAME', name)}" for place in re.findall("`(.+?)`", places)}
    touched = {
        path.relative_to(ROOT).as_posix()
        for path in modules().values()
        if path.stem == name or name in said(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert touched == listed


def test_the_table_has_its_rows() -> None:
    assert [what.split(maxsplit=1)[1] for what, _, _ in ROWS] == [
        *("token mixer", "sampler", "data set", "objective", "family of baselines"),
    ]
