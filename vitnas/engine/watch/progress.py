"""The progress of a search, from the events of its controller."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from vitnas.engine.watch.pace import Pace, pace_of
from vitnas.engine.watch.text import rates_text
from vitnas.ranking import front_now
from vitnas.records import Outcome, TrialRecord


class Progress:
    """The state of a search, for displays. `listen` keeps it up to date.

    Args:
        num_trials: number of trainings of the run; None = no limit.
        epochs: epochs of a full training.
        costs: the costs among the objectives.

    Attributes:
        num_ended: number of trainings that have ended, with those of earlier sessions.
        num_replicates: number of replicates of this run that have ended.
        num_images: of the scoring split; None as long as it is unknown: then scores rank.
        baselines_follow: whether baselines are trained after the trials.
        sized: whether lines of networks tell the image size.
        doing: the work before, between and after the trainings; empty while networks train.
    """

    def __init__(self, num_trials: int | None, epochs: int, costs: Sequence[str]) -> None:
        self.num_trials, self.epochs, self.costs = num_trials, epochs, costs
        self.num_ended = self.num_replicates = 0
        self.num_images: int | None = None
        self.baselines_follow, self.sized, self.doing = False, False, ""
        self._front: tuple[TrialRecord, ...] | None = None
        self._began = time.time()
        self._trials: dict[int, TrialRecord] = {}

    def listen(self, event: str, trial: TrialRecord) -> None:
        """Take a change from the controller."""
        self._trials[trial.number] = self._timed(event, trial)
        if event in ("start", "epoch") and trial.epochs:
            self.doing = ""
        if event in ("end", "known") and trial.outcome.is_trial:
            self.num_ended += trial.is_ended_here
            self.num_replicates += trial.replicate_of is not None and not trial.taken
            self._front = None

    @property
    def front(self) -> tuple[TrialRecord, ...]:
        """Members of the front so far, cheapest first; ranked when somebody asks."""
        if self._front is None:
            self._front = front_now(tuple(self._trials.values()), self.num_images, self.costs)
        return self._front

    def running(self) -> list[TrialRecord]:
        """The trials in training. Other threads may call this, too."""
        trials = tuple(self._trials.values())
        return [t for t in trials if t.outcome is Outcome.RUNNING and t.key and t.started]

    def pace(self) -> Pace:
        """The speed of the trainings and the time left, as far as they are known."""
        trials = tuple(self._trials.values())
        return pace_of(trials, self.num_trials, self.epochs, self._began, time.time())

    def rates(self) -> str:
        """`1.2 epochs/s, 3:05 left, then baselines`, as far as they are known."""
        return rates_text(self.pace(), baselines_follow=self.baselines_follow)

    def _timed(self, event: str, trial: TrialRecord) -> TrialRecord:
        """The record with the times that are in the study only so far."""
        if event == "known":
            return trial
        earlier = self._trials.get(trial.number)
        started = time.time() if event == "start" or earlier is None else earlier.started
        return replace(trial, started=started, ended=time.time() if event == "end" else None)
