"""The page about the papers' spaces has the table that its command prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_the_table_is_what_the_command_prints() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "spaces.py")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    table = "\n".join(line for line in lines if line.startswith("|"))
    assert table in (ROOT / "docs" / "spaces.md").read_text(encoding="utf-8")
    assert json.loads(lines[-1])["met"]
