"""Folders that earlier code wrote give the logits that they gave then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import vitnas
from vitnas.errors import ConfigError

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["network", "graft"])
def test_an_older_export_gives_the_same_logits(name: str) -> None:
    stored = load_file(GOLDEN / f"{name}.safetensors")
    with torch.no_grad():
        logits = vitnas.load(GOLDEN / name)(stored["images"])
    torch.testing.assert_close(logits, stored["logits"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "file"), [("network", "config.yaml"), ("graft", "graft.yaml")])
def test_an_export_of_a_later_format_is_one_line(name: str, file: str, tmp_path: Path) -> None:
    folder = shutil.copytree(GOLDEN / name, tmp_path / name)
    text = (folder / file).read_text()
    (folder / file).write_text(f"format: 1\n{text}")
    vitnas.load(folder)
    (folder / file).write_text(f"format: 2\nunheard_of: 3\n{text}")
    with pytest.raises(ConfigError, match=rf"{file}: format = 2: this vitnas reads 1"):
        vitnas.load(folder)
