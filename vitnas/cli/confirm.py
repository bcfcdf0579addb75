"""The command confirm."""

from __future__ import annotations

from typing import Any

from vitnas.cli.app import RunFolder, app
from vitnas.cli.declared import with_options
from vitnas.cli.streams import complain, say
from vitnas.confirmation.options import ConfirmOptions


@app.command()
@with_options(ConfirmOptions)
def confirm(run: RunFolder, **options: Any) -> None:
    """Train some of RUN's front and baselines of like FLOPs for long, and say which are better."""
    from vitnas import api
    from vitnas.report.long_against import against_text

    found = api.confirm(run, notice=complain, **options)
    say(against_text(found))
    say(f"report: {found.path / 'report.html'}")
