"""Every benchmark runs and ends in one JSON object; how fast it found things is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
BENCHMARKS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "common")
SOON = {"closed_form", "pareto", "report", "sampler", "spaces"}
KEYS = {"benchmark", "quick", "figures", "targets", "met", "hardware"}


def test_there_are_benchmarks() -> None:
    assert set(BENCHMARKS) >= {"demo", *SOON}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SOON else pytest.mark.nightly)
        for name in BENCHMARKS
    ],
)
def test_a_quick_run_ends_in_its_figures(name: str, tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / f"{name}.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert set(result) == KEYS
    assert result["benchmark"] == name
    assert result["quick"] is True
    assert result["targets"]
    assert set(result["targets"]) <= set(result["figures"])
    assert isinstance(result["met"], bool)
    assert result["hardware"]["cores"] >= 1
    assert not list(tmp_path.iterdir())
