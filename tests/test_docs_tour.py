"""The notebook docs/tour.ipynb runs from top to bottom, and is kept without what it printed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

BOOK: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[1] / "docs/tour.ipynb").read_text(encoding="utf-8")
)
CODE = [cell for cell in BOOK["cells"] if cell["cell_type"] == "code"]


def test_no_output_is_kept() -> None:
    assert (BOOK["nbformat"], BOOK["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in BOOK["cells"]}) == len(BOOK["cells"])
    for cell in CODE:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.nightly
def test_the_cells_run_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in CODE:
            exec("".join(cell["source"]), names)
    said = capsys.readouterr().out
    assert "% of the test images" in said
    assert "model.py" in said
    assert names["scored"].top1 > 80, "digits; a guess has 10 %"
