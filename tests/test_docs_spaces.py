"""The page about the papers' spaces has the tables that its command prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_tables_are_what_the_command_prints() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "spaces.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    *tables, figures = printed.strip().split("\n\n")
    page = (ROOT / "docs" / "spaces.md").read_text(encoding="utf-8")
    assert len(tables) == 2
    assert all(table in page for table in tables)
    assert json.loads(figures.splitlines()[-1])["met"]
