"""`vitnas gpu-check`: whether vitnas works on this machine's CUDA device, and how fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vitnas.cli.app import app
from vitnas.cli.streams import say


@app.command("gpu-check")
def gpu_check(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for gpu/<card>.json and gpu.md, the table of all cards there."),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry", help="On the CPU, little of each; nothing is written.")
    ] = False,
) -> None:
    """Measure proxy trainings and searches on this machine's CUDA device."""
    from vitnas.gpucheck.check import check_gpu

    checked = check_gpu(dry, lambda line: say(line, flush=True))
    if checked.tests:
        say(f"tests that need a card: {checked.tests}")
    if out and not dry:
        from vitnas.gpucheck.write import write

        say(f"{write(checked, out)}: the figures; {out / 'gpu.md'}: their table")
    if checked.failed:
        raise typer.Exit(2)
