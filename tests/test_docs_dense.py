"""The example of docs/dense.md runs and gives what its comments say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dense.md"


@pytest.mark.slow
def test_the_example() -> None:
    names: dict[str, Any] = {}
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(block, names)
    said = re.findall(r"\(B, (\d+), (\d+), (\d+)\)", block)
    assert [tuple(level.shape[1:]) for level in names["levels"]] == [
        tuple(map(int, one)) for one in said
    ]
    assert f"# {names['backbone'].feature_info.channels()}" in block
