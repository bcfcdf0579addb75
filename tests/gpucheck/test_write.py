"""The files of a check."""

from __future__ import annotations

import json
from pathlib import Path

from vitnas.gpucheck.check import GpuCheck, Reading
from vitnas.gpucheck.write import page, write

FACTS = {"versions": {"torch": "2.9.0"}}


def test_a_check_writes_its_figures_and_the_table_of_all_cards(tmp_path: Path) -> None:
    fast = {"proxy": Reading({"seconds": 5.25}), "shared": Reading({"ratio": 1.5})}
    write(GpuCheck("NVIDIA H200", FACTS, fast, "12 passed"), tmp_path)
    failed = {"digits": Reading(error="no end within 150 s")}
    path = write(GpuCheck("NVIDIA T4", FACTS, failed), tmp_path)
    assert json.loads(path.read_text())["readings"]["digits"]["error"] == "no end within 150 s"
    text = (tmp_path / "gpu.md").read_text()
    assert "|  | target | NVIDIA H200 | NVIDIA T4 |" in text
    assert "| **5.25** | – |" in text
    assert "| 1.5 | – |" in text
    assert "| – | no end within 150 s |" in text
    assert "| tests that need a card |  | 12 passed | – |" in text
    assert sorted(p.name for p in tmp_path.rglob("*.*")) == [
        "gpu.md",
        "nvidia-h200.json",
        "nvidia-t4.json",
    ]


def test_the_page_in_docs_is_the_one_that_is_written() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    found = [json.loads(path.read_text()) for path in sorted((docs / "gpu").glob("*.json"))]
    assert (docs / "gpu.md").read_text(encoding="utf-8") == page(found)
