"""The panel of a terminal: epochs of what trains, and the front; only networks are cut."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from tests.engine.conftest import start, train_some
from tests.engine.decide.conftest import Make
from vitnas.engine.watch.panel import _Panel
from vitnas.engine.watch.progress import Progress


@pytest.mark.parametrize("width", [80, 120])
def test_the_panel_shows_epochs_and_cuts_only_networks(controller_of: Make, width: int) -> None:
    progress = Progress(9, 3, ("flops",))
    controller = controller_of(num_trials=9, listener=progress.listen)
    train_some(controller, 2)
    job = start(controller)
    controller.report(job.number, 1, 55.5)
    console = Console(width=width, file=io.StringIO())
    console.print(_Panel(progress).render())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(rf"trains +{job.number} +1/3 +55\.50 +[\d.]+ [kM] +[\d.]+ k", text), text
    assert re.search(r"front +\d +3/3", text)
    assert all(len(line) <= width for line in text.splitlines())
    assert "2/9 trials, 1 running" in text
    progress.doing = "scoring the front"
    console.print(_Panel(progress).render())
    assert "scoring the front  0:00" in console.file.getvalue()  # type: ignore[attr-defined]
