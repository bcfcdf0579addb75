"""The examples of docs/timm.md run, one after the other, and give what their comments say."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "timm.md"


@pytest.mark.slow
def test_examples() -> None:
    names: dict[str, Any] = {}
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for statement in ast.parse(block).body:
            source = ast.get_source_segment(block, statement) or ""
            line = block.splitlines()[(statement.end_lineno or 1) - 1]
            said = re.search(r"# +(.*)", line)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = _run(source, statement, names)
            checked += said is not None and _agrees(said[1], value)
    assert checked >= 7


def _run(source: str, statement: ast.stmt, names: dict[str, Any]) -> Any:
    """The value of an expression, or of the last name that is assigned."""
    if isinstance(statement, ast.Expr):
        return eval(source, names)
    exec(source, names)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return names[target.id] if isinstance(target, ast.Name) else None


def _agrees(said: str, value: Any) -> bool:
    """Whether a comment states a value, which is then compared."""
    shown = re.match(r"(\(\d[^)]*\)|\[.*\])", said)
    if value is None or shown is None:
        return False
    found = tuple(value.shape) if hasattr(value, "ndim") else value
    if "..." in shown[1]:
        assert str(found).startswith(shown[1].split("...")[0])
    else:
        assert str(tuple(found) if isinstance(found, tuple) else found) == shown[1]
    return True
