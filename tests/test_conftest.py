"""What the tests found of exports stands in the summary, though all of them pass."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TESTS = """
import pytest

@pytest.mark.parametrize("difference", [1e-7, 3e-7, 2e-7])
def test_two_files(difference, compared):
    compared({"model.py": difference, "model.onnx": 10 * difference})

def test_two_networks(compared):
    compared({"model.py": 0.0})
    compared({"model.py": 0.5})
    assert not FAILS

def test_none(record_property):
    record_property("of another kind", 1)
"""
SAID = (
    "export parity: 3 networks, largest difference 3.0e-06 (model.onnx); "
    "5 networks, largest difference 5.0e-01 (model.py)"
)


def output(place: Path, source: str, *options: str) -> list[str]:
    (place / "test_it.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "--basetemp=base"]
    done = subprocess.run(
        [*command, *options, "test_it.py"],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize("fails", [False, True])
def test_the_summary_counts_networks(tmp_path: Path, processes: str, fails: bool) -> None:
    """Also where other processes ran the tests, and of a test that fails."""
    said = output(tmp_path, TESTS.replace("FAILS", str(fails)), "-n", processes)
    assert said.count(SAID) == 1, said


@pytest.mark.slow
def test_without_exports_it_says_nothing(tmp_path: Path) -> None:
    said = output(tmp_path, "def test_it():\n    pass\n")
    assert "1 passed" in said[-1]
    assert "parity" not in "".join(said)
