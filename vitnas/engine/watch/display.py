"""The one progress display: a line a trial, and on a terminal a live panel below the lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from vitnas.config.costs import DEFAULT_COSTS
from vitnas.engine.watch.progress import Progress
from vitnas.engine.watch.text import network_of, said
from vitnas.errors import printable, spelled_out
from vitnas.records import Outcome, TrialRecord

if TYPE_CHECKING:
    from rich.live import Live

_SILENT_S = 30.0


class Display:
    """Shows a search: give `listen`, `say` and `scored_by` to it, and use the display as a context.

    If its output is closed (a closed pipe), it stops writing; the search continues.

    Args:
        num_trials: trainings the run shall have; None = no bound.
        epochs: of a full training.
        stream: where to write; a live panel when it is a terminal.
        costs: those among the objectives.
        shown: whether anything is written at all.
        baselines_follow: whether baselines are trained after the trials.
        sized: whether the image size is searched, so that lines tell it.
    """

    def __init__(
        self,
        num_trials: int | None,
        epochs: int,
        stream: TextIO | None = None,
        costs: Sequence[str] = DEFAULT_COSTS,
        shown: bool = True,
        baselines_follow: bool = False,
        sized: bool = False,
    ) -> None:
        self.stream = stream or sys.stdout
        self._progress = Progress(num_trials, epochs, costs)
        self._progress.baselines_follow, self._progress.sized = baselines_follow, sized
        self._shown = shown
        self._printed = time.monotonic()
        self._started = False
        self._live: Live | None = None

    def __enter__(self) -> Display:
        if self._shown and self.stream.isatty():
            from vitnas.engine.watch.panel import live

            self._live = live(self._progress, self.stream)
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        """Tell what is done now. A log has it once a training has started: a search that fails
        before leaves one line there, the error's."""
        self._progress.doing = printable(line)
        if self._live is None and self._started:
            self.note(f"{self._progress.doing} ...")

    def scored_by(self, num_images: int) -> None:
        """Take how many images score a network."""
        self._progress.num_images = num_images

    def note(self, line: str) -> None:
        """Print a line, above the panel where there is one."""
        line = spelled_out(line)
        self._printed = time.monotonic()
        if self._live is not None:
            self._live.console.print(
                line, markup=False, highlight=False, no_wrap=True, overflow="ellipsis"
            )
        elif self._shown:
            try:
                print(line, file=self.stream, flush=True)
            except OSError:  # a closed pipe or a full disk: the search matters more
                self._shown = False

    def listen(self, event: str, trial: TrialRecord) -> None:
        """Take a change from the controller."""
        if event == "start" and not self._started:
            self._start()
        self._progress.listen(event, trial)
        if event == "end" and trial.outcome.is_trial:
            self.note(self._line(trial))
        silent = self._live is None and time.monotonic() - self._printed >= _SILENT_S
        if event == "epoch" and silent:
            self.note(self._epoch_line(trial))

    def _start(self) -> None:
        """The first training of this session starts."""
        self._started = True
        if self._live is None and self._progress.doing:
            self.note(f"{self._progress.doing} ...")

    def _line(self, trial: TrialRecord) -> str:
        """One ended training."""
        progress = self._progress
        total = str(progress.num_trials or "")
        done = f"[{progress.num_ended:>{len(total)}}{'/' * bool(total)}{total}]"
        note = trial.error or network_of(trial, progress.sized)
        if trial.replicate_of is not None:
            done = f"[replicate {progress.num_replicates}]"
            note = f"replicate of {trial.replicate_of}  {note}"
        top1 = "" if trial.top1 is None else f"{trial.top1:6.2f} %"
        how = trial.outcome.value
        if trial.outcome is Outcome.STOPPED:
            how += f" at {trial.epochs}/{progress.epochs}"
        cost = ", ".join(filter(None, (said(trial, name) for name in progress.costs)))
        known = ", ".join(filter(None, (f"front {len(progress.front)}", progress.rates())))
        line = f"{done} trial {trial.number:<4} {how:<16} {top1:>8} {cost}"
        return f"{line}  {printable(note)}  ({known})"

    def _epoch_line(self, trial: TrialRecord) -> str:
        """A training under way."""
        rates = self._progress.rates()
        epoch = f"epoch {trial.epochs}/{self._progress.epochs}"
        line = f"        trial {trial.number:<4} {epoch:<16} {trial.top1:6.2f} %"
        return f"{line}  ({rates})" if rates else line
