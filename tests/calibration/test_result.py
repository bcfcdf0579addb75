"""The stored form: written, read, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calibration.made_up import judged
from vitnas.calibration.result import FILE_NAME, read_calibration
from vitnas.errors import RunError


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = judged()
    (tmp_path / FILE_NAME).write_text(found.model_dump_json())
    assert read_calibration(tmp_path) == found
    assert found.best_size.kind == "size"
    assert found.beats_size == (found.figures(found.cheapest).kind != "size")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (None, "no calibration (calibration.json: "),
        ("{", "is not a calibration of format 1 (JSON: "),
        ('{"format": 2}', "is not a calibration of format 1 ("),
    ],
)
def test_what_is_no_calibration_is_one_line(tmp_path: Path, content: str | None, line: str) -> None:
    if content is not None:
        (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(RunError) as caught:
        read_calibration(tmp_path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
