"""The calibration of a run: a copy of the calibration's file in the run's folder."""

from __future__ import annotations

import shlex
from pathlib import Path

from vitnas.calibration.result import FILE_NAME, Calibration, read_calibration
from vitnas.config.differences import are_same_images
from vitnas.config.space_files import SPACE_OF_RUN
from vitnas.errors import RunError
from vitnas.files import exists, write_text, writing
from vitnas.run import Run

_SAME = ("data", "proxy", "model", "limits")


def calibration_of(run: Run) -> Calibration | None:
    """The calibration in the run's folder; None where there is none.

    Raises:
        RunError: it is damaged, or it is for another space or other images.
    """
    return _fitting(run, run.path) if exists(run.path / FILE_NAME) else None


def adopt(run: Run, folder: Path) -> None:
    """Copy the calibration of `folder` into the run's folder, for this and every later report.

    Raises:
        RunError: `folder` has none, it is damaged, it is for another space or other images, or the
            run's folder cannot be written.
    """
    found = _fitting(run, folder)
    with writing(run.path):
        write_text(run.path / FILE_NAME, found.model_dump_json(indent=1) + "\n")


def _fitting(run: Run, folder: Path) -> Calibration:
    """The calibration in `folder`, which is for the run's space and images."""
    found = read_calibration(folder)
    rule = f"{folder / FILE_NAME}: must calibrate the space of {run.path}"
    for part in _SAME:
        if run.space.get(part) != found.space.get(part):
            remedy = shlex.join(["vitnas", "calibrate", str(run.path / SPACE_OF_RUN)])
            raise RunError(f"{rule}; {part} differs; `{remedy} --out DIR` calibrates it")
    here, there = (data.told().get("fingerprint") for data in (run.environment.data, found.data))
    if here and there and not are_same_images(here, there, tested=False):
        raise RunError(f"{rule}; the images' fingerprint differs")
    return found
