"""The one progress display: a live panel on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from vitnas.config.costs import COSTS, DEFAULT_COSTS, EXACT, amount, cost_of
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.notation import one_line
from vitnas.records import Outcome, TrialRecord, averaged, front_of

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

_ROWS = 12


class Display:
    """Shows a search; give its `listen` to the controller and use it as a context.

    Args:
        num_trials: trainings the run shall have; None = no bound.
        epochs: of a full training.
        stream: where to write; a live panel when it is a terminal.
        costs: those among the objectives.
    """

    def __init__(
        self,
        num_trials: int | None,
        epochs: int,
        stream: TextIO | None = None,
        costs: Sequence[str] = DEFAULT_COSTS,
    ) -> None:
        self.num_trials, self.epochs, self.costs = num_trials, epochs, costs
        self.stream = stream or sys.stdout
        self.trials: dict[int, TrialRecord] = {}
        self.num_ended = 0
        self._ended_here: deque[float] = deque()
        self._epochs_here = 0
        self._started: float | None = None  # when the first epoch had ended: workers take a while
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if self.stream.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(file=self.stream), refresh_per_second=4, transient=True
            )
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.update(self._table())
            self._live.stop()

    def listen(self, event: str, trial: TrialRecord) -> None:
        """Take a change from the controller."""
        self.trials[trial.number] = trial
        if event == "epoch":
            self._epochs_here += self._started is not None
            self._started = self._started or time.monotonic()
        if trial.is_ended_here and event in ("end", "known"):
            self.num_ended += 1
        if event == "end" and trial.is_ended_here:
            self._ended_here.append(time.monotonic())
        if self._live is not None:
            self._live.update(self._table())
        elif event == "end" and trial.outcome.is_trial:
            print(self._line(trial), file=self.stream, flush=True)

    def _front(self) -> tuple[TrialRecord, ...]:
        return front_of(averaged(self.trials.values()), self.costs)

    def _rates(self) -> str:
        now = time.monotonic()
        elapsed = now - (self._started or now)
        text = f"{self._epochs_here / max(elapsed, 1e-9):.1f} epochs/s"
        if self._ended_here and self.num_trials is not None and not self._replicates():
            left = (self.num_trials - self.num_ended) * elapsed / len(self._ended_here)
            text += f", {clock(left)} left"
        return text

    def _replicates(self) -> str:
        """`5 replicates, ` of those made here that have ended; nothing without any."""
        made = [t for t in self.trials.values() if t.replicate_of is not None and not t.taken]
        ended = sum(trial.outcome.is_trial for trial in made)
        return f"{ended} replicate{'s' * (ended != 1)}, " if made else ""

    def _line(self, trial: TrialRecord) -> str:
        """One ended trial as plain text."""
        total = str(self.num_trials or "")
        done = f"[{self.num_ended:>{len(total)}}/{total}]" if total else f"[{self.num_ended}]"
        top1 = "" if trial.top1 is None else f"{trial.top1:6.2f} %"
        how = trial.outcome.value
        if trial.outcome is Outcome.STOPPED:
            how += f" at {trial.epochs}/{self.epochs}"
        cost = ", ".join(filter(None, (said(trial, name) for name in self.costs)))
        note = trial.error or _network(trial)
        if trial.replicate_of is not None:
            note = f"replicate of {trial.replicate_of}  {note}"
        return (
            f"{done} trial {trial.number:<4} {how:<16} {top1:>8} {cost}  {note}  "
            f"(front {len(self._front())}, {self._rates()})"
        )

    def _table(self) -> Table:
        from rich.table import Table

        running = [t for t in self.trials.values() if t.outcome is Outcome.RUNNING and t.key]
        table = Table(
            title=f"{self.num_ended}{f'/{self.num_trials}' if self.num_trials else ''} trials, "
            f"{self._replicates()}{len(running)} running, "
            f"{self._rates()}",
            title_justify="left",
        )
        shown = tuple(dict.fromkeys((*EXACT, *self.costs)))
        for name in ("trial", "top-1 %", *(COSTS[cost].head for cost in shown)):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("network on the front", overflow="ellipsis", no_wrap=True)
        members = self._front()
        for trial in members[-_ROWS:]:
            table.add_row(
                str(trial.number),
                f"{trial.top1:.2f}",
                *(amount(cost, *trial.costs([cost])) for cost in shown),
                _network(trial),
            )
        if len(members) > _ROWS:
            table.caption = f"{len(members) - _ROWS} cheaper ones not shown"
        return table


def said(trial: TrialRecord, cost: str) -> str:
    """A trial's cost with its name where the unit does not say it: `41.2 M FLOPs`, `0.53 ms`."""
    value = cost_of(trial, cost)
    if value is None:
        return ""
    return f"{amount(cost, value):>7}" + (f" {COSTS[cost].head}" if cost in EXACT else "")


def clock(seconds: float) -> str:
    """`75` -> `1:15`; with hours, `1:02:03`."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def _network(trial: TrialRecord) -> str:
    return one_line(validate(ModelConfig, dict(trial.config))) if trial.config else ""
