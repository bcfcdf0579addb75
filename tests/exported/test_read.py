"""Folders that earlier code wrote give the logits that they gave then."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import vitnas

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["network", "graft"])
def test_an_older_export_gives_the_same_logits(name: str) -> None:
    stored = load_file(GOLDEN / f"{name}.safetensors")
    with torch.no_grad():
        logits = vitnas.load(GOLDEN / name)(stored["images"])
    torch.testing.assert_close(logits, stored["logits"], rtol=1e-6, atol=1e-6)
