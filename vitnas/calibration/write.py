"""The files of a calibration that has ended."""

from __future__ import annotations

from pathlib import Path

from vitnas.calibration.plot import calibration_png
from vitnas.calibration.result import FILE_NAME, Calibration
from vitnas.calibration.text import calibration_markdown
from vitnas.errors import RunError, reason_of
from vitnas.files import write_bytes, write_text


def write_calibration(found: Calibration, folder: Path) -> None:
    """Write calibration.json, calibration.md and calibration.png into `folder`.

    Raises:
        RunError: they cannot be written.
    """
    try:
        write_text(folder / FILE_NAME, found.model_dump_json(indent=1) + "\n")
        write_text(folder / "calibration.md", calibration_markdown(found))
        write_bytes(folder / "calibration.png", calibration_png(found))
    except OSError as error:
        raise RunError(f"{folder}: cannot be written to: {reason_of(error)}") from None
