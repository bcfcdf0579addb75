"""The command calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vitnas.calibration.options import CalibrationOptions
from vitnas.cli.app import Images, SpaceName, app
from vitnas.cli.declared import with_options
from vitnas.cli.streams import complain, say


@app.command()
@with_options(CalibrationOptions)
def calibrate(
    space: SpaceName = "digits",
    data: Images = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write; default results/calibrate/<name of the space>."),
    ] = None,
    **options: Any,
) -> None:
    """Measure how well short trainings of SPACE foretell long ones; resumes a stopped one."""
    from vitnas import api
    from vitnas.calibration.text import calibration_text

    found, folder = api.calibrate(api.load_space(space, data), out, notice=complain, **options)
    say(calibration_text(found))
    say(f"picture: {folder / 'calibration.png'}")
