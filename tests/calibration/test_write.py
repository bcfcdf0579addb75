"""The files of a calibration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.calibration.made_up import judged
from vitnas.calibration.result import read_calibration
from vitnas.calibration.write import write_calibration
from vitnas.errors import RunError


def test_json_page_and_picture_are_written(tmp_path: Path) -> None:
    found = judged()
    write_calibration(found, tmp_path)
    assert read_calibration(tmp_path) == found
    assert (tmp_path / "calibration.md").read_text().startswith(("Search with", "Nothing here"))
    assert (tmp_path / "calibration.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written to"):
        write_calibration(judged(), tmp_path / "file")
