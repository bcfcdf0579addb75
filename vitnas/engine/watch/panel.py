"""The live panel of a search on a terminal: what is done, what trains, what is on the front."""

from __future__ import annotations

import time
from math import isnan
from typing import TextIO

from rich.box import SIMPLE
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from vitnas.config.costs import COSTS, amount
from vitnas.durations import clock
from vitnas.engine.watch.progress import Progress
from vitnas.engine.watch.text import network_of, replicates_text, trials_text
from vitnas.records import TrialRecord

_ROWS = 8


def live(progress: Progress, stream: TextIO) -> Live:
    """A panel that shows `progress` on a terminal until it is stopped."""
    render = _Panel(progress).render
    console = Console(file=stream)
    return Live(console=console, get_renderable=render, refresh_per_second=4, transient=True)


class _Panel:
    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._spinner = Spinner("dots")
        self._doing, self._since = "", time.monotonic()

    def render(self) -> Group:
        table = self._table()
        below = self._activity() if self._progress.doing else Text(self._summary())
        return Group(table, below) if table.row_count else Group(below)

    def _summary(self) -> str:
        """`12/24 trials, 2 running, 1.2 epochs/s, 3:05 left`."""
        progress = self._progress
        again = progress.num_replicates
        parts = [
            trials_text(progress.num_ended, progress.num_trials),
            replicates_text(again) if again else "",
            f"{len(progress.running())} running",
            progress.rates(),
        ]
        return ", ".join(filter(None, parts))

    def _activity(self) -> Spinner:
        """What is done now, and for how long."""
        if self._progress.doing != self._doing:
            self._doing, self._since = self._progress.doing, time.monotonic()
        self._spinner.update(text=Text(f"{self._doing}  {clock(time.monotonic() - self._since)}"))
        return self._spinner

    def _table(self) -> Table:
        """What is in training and, below it, the front; where it is long, its costly end."""
        running, front = self._progress.running(), self._progress.front
        trains = [self._row("trains", trial) for trial in running[:_ROWS]]
        on_front = [self._row("front", trial) for trial in front[-_ROWS:]]
        heads = ["", "trial", "epoch", "top-1 %", *(COSTS[name].head for name in self._costs())]
        table = Table(box=SIMPLE, pad_edge=False, collapse_padding=True)
        for index, head in enumerate(heads):
            width = max(map(len, [head, *(row[index] for row in (*trains, *on_front))]))
            table.add_column(head, justify="right", no_wrap=True, min_width=width)
        table.add_column("network", overflow="ellipsis", no_wrap=True)
        for row in (*trains, *on_front):
            table.add_row(*map(Text, row), end_section=row is (trains or on_front)[-1])
        hidden = [
            (len(running) - _ROWS, "in training"),
            (len(front) - _ROWS, "cheaper on the front"),
        ]
        more = ", ".join(f"{number} more {what}" for number, what in hidden if number > 0)
        table.caption = f"not shown: {more}" if more else None
        return table

    def _row(self, what: str, trial: TrialRecord) -> list[str]:
        top1 = "" if trial.top1 is None else f"{trial.top1:.2f}"
        costs = [
            "" if isnan(value) else amount(name, value)
            for name, value in zip(self._costs(), trial.costs(self._costs()), strict=True)
        ]
        epoch = f"{trial.epochs}/{self._progress.epochs}"
        network = network_of(trial, self._progress.sized)
        return [what, str(trial.number), epoch, top1, *costs, network]

    def _costs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("flops", "num_params", *self._progress.costs)))
