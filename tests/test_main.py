"""`python -m vitnas` is the command `vitnas`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODEL = """
name: m
img_size: 8
in_chans: 1
num_classes: 10
stem: {kind: conv, stride: 2}
stages: [{token_mixer: "beside:Mixer", embed_dim: 16}]
"""


def test_a_file_in_the_working_directory_is_not_imported(tmp_path: Path) -> None:
    """A stranger's folder may hold a model and the module that it names."""
    (tmp_path / "beside.py").write_text("open('imported', 'w')")
    (tmp_path / "m.yaml").write_text(MODEL)
    command = [sys.executable, "-m", "vitnas", "describe", "m.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "the package beside is not installed here, nor in a folder of PYTHONPATH" in done.stderr
    assert not (tmp_path / "imported").exists()
