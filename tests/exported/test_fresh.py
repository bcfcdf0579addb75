"""The program that checks a folder knows neither vitnas nor timm."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vitnas.exported.check import _SCRIPT
from vitnas.exported.fresh import _compared, main

SOURCE = """
import torch

def load():
    return lambda images: images.flatten(1)[:, :3] + {added}
"""


def test_differences_are_in_units_of_the_largest_score(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SOURCE.format(added=0.5))
    images = torch.zeros(2, 1, 2, 2)
    expected = torch.tensor([[0.0, 5.0, 0.0]] * 2)
    torch.save((images, expected), tmp_path / "scores.pt")
    assert main(tmp_path, tmp_path / "scores.pt") == {"model.py": (0.9, 0.0)}


def test_a_tie_is_no_other_class() -> None:
    expected = torch.tensor([[1.0, 1.0 - 1e-7]])
    assert _compared(torch.tensor([[1.0, 1.0 + 1e-7]]), expected)[1] == 1.0
    assert _compared(torch.tensor([[1.0, 1.1]]), torch.tensor([[1.0, 0.9]]))[1] == 0.0


@pytest.mark.slow
def test_vitnas_cannot_be_imported_in_it(tmp_path: Path) -> None:
    torch.save((torch.zeros(1, 1, 1, 1), torch.zeros(1, 1)), tmp_path / "scores.pt")
    (tmp_path / "model.py").write_text("try:\n    import vitnas\nfinally:\n    import timm\n")
    command = [sys.executable, str(_SCRIPT), str(tmp_path), str(tmp_path / "scores.pt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode
    assert "import of vitnas halted" in done.stderr
    assert "import of timm halted" in done.stderr
