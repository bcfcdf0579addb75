"""The calibration of a run: a copy of the calibration's file in the run's folder."""

from __future__ import annotations

from pathlib import Path

from vitnas.calibration.result import FILE_NAME, Calibration, read_calibration
from vitnas.config.differences import same_images
from vitnas.errors import RunError
from vitnas.files import write_text, writing
from vitnas.run import Run

_SAME = ("data", "proxy", "model", "limits")


def calibration_of(run: Run) -> Calibration | None:
    """The calibration in the run's folder; None if there is none for this space and data."""
    try:
        found = read_calibration(run.path)
    except RunError:
        return None
    return None if _difference(run, found) else found


def adopt(run: Run, folder: Path) -> None:
    """Copy the calibration of `folder` into the run's folder, for this and every later report.

    Raises:
        RunError: `folder` has none, it is for another space or other images, or the run's folder
            cannot be written.
    """
    found = read_calibration(folder)
    difference = _difference(run, found)
    if difference:
        raise RunError(f"{folder}: must calibrate the space of {run.path}; {difference} differs")
    with writing(run.path):
        write_text(run.path / FILE_NAME, found.model_dump_json(indent=1) + "\n")


def _difference(run: Run, found: Calibration) -> str:
    """The first part in which the spaces or the images differ; empty if they are equal."""
    parts = [name for name in _SAME if run.space.get(name) != found.space.get(name)]
    here, there = (data.told().get("fingerprint") for data in (run.environment.data, found.data))
    if here and there and not same_images(here, there, tested=False):
        parts.append("the images' fingerprint")
    return parts[0] if parts else ""
