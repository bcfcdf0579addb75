"""The calibration that a run has been told of: a copy of its file in the run's folder."""

from __future__ import annotations

from pathlib import Path

from vitnas.calibration.result import FILE_NAME, Calibration, read_calibration
from vitnas.errors import RunError
from vitnas.files import write_text, writing
from vitnas.records import Run

_SAME = ("data", "proxy", "model", "limits")


def calibration_of(run: Run) -> Calibration | None:
    """The calibration in the run's folder; None where there is none of this space and data."""
    try:
        found = read_calibration(run.path)
    except RunError:
        return None
    return None if _difference(run, found) else found


def adopt(run: Run, folder: Path) -> None:
    """Put the calibration of `folder` into the run's folder, where every later report finds it.

    Raises:
        RunError: there is none in `folder`, it is of another space or other images, or the run's
            folder cannot be written to.
    """
    found = read_calibration(folder)
    difference = _difference(run, found)
    if difference:
        raise RunError(f"{folder}: calibrates another space than {run.path}: {difference} differs")
    with writing(run.path):
        write_text(run.path / FILE_NAME, found.model_dump_json(indent=1) + "\n")


def _difference(run: Run, found: Calibration) -> str:
    """The first part in which the spaces or the images differ; empty where none does."""
    parts = [name for name in _SAME if run.space.get(name) != found.space.get(name)]
    here, there = (data.told().get("fingerprint") for data in (run.environment.data, found.data))
    if here and there and here != there:
        parts.append("the images' fingerprint")
    return parts[0] if parts else ""
