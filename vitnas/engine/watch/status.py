"""What a run is doing, read from its study while a driver writes it, or after; no torch, no Ray."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from vitnas.durations import clock
from vitnas.engine.store.folder import is_locked
from vitnas.engine.store.study import read_run
from vitnas.engine.watch.pace import Pace, pace_of
from vitnas.engine.watch.text import (
    long_text,
    network_of,
    rates_text,
    replicates_text,
    said,
    trials_text,
)
from vitnas.longer import LongResult
from vitnas.plugins import closed
from vitnas.records import Outcome, TrialRecord
from vitnas.run import Run
from vitnas.sessions import Session


@dataclass(frozen=True)
class Underway:
    """A trial that is being trained, or waits to be trained again.

    Attributes:
        trial: its number.
        epoch: epochs trained so far.
        replicate_of: the trial whose network it trains again; None for a trial of its own.
        top1: percent on the scoring split after that; None before the first epoch has ended.
        flops: multiply-adds of one image.
        costs: those among the objectives, as people read them; what is not measured yet is not
            among them.
        network: in one line.
    """

    trial: int
    epoch: int
    replicate_of: int | None
    top1: float | None
    flops: int
    costs: str
    network: str


@dataclass(frozen=True)
class Status:
    """A run at a glance.

    Attributes:
        path: the folder.
        name: of the space.
        is_searching: whether a driver on this machine writes to it now.
        counts: candidates by outcome; those that there are.
        num_ended: trainings that have ended, earlier sessions included.
        num_trials: how many the run shall have; None = no bound.
        num_replicates: trainings of candidates with other seeds that have ended; no trials.
        num_baselines: baselines that have been trained, also in earlier sessions.
        most_baselines: how many the run shall have; they are trained after its trials.
        epochs: of a full training.
        underway: in training, or interrupted and to be trained again when nobody is searching.
        epochs_per_second: trained in the last session; None before its first training has ended.
        seconds: how long the last session has lasted.
        seconds_left: until `num_trials` at the pace of the last session; None when not known.
        best_top1, best_trial: the most accurate complete network, in percent.
        is_int8: whether top-1 is that of networks in int8.
        front_size: networks on the front.
        num_long: long trainings of its networks.
        best_long: the most accurate network after one, by the scoring images.
        ended_by: why the last session ended before its trials did; None when it did not.
    """

    path: str
    name: str
    is_searching: bool
    counts: Mapping[str, int]
    num_ended: int
    num_trials: int | None
    num_replicates: int
    num_baselines: int
    most_baselines: int
    epochs: int
    underway: tuple[Underway, ...]
    epochs_per_second: float | None
    seconds: float
    seconds_left: float | None
    best_top1: float | None
    best_trial: int | None
    is_int8: bool
    front_size: int
    num_long: int
    best_long: LongResult | None
    ended_by: str | None

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `json.dumps`."""
        return asdict(self)


@closed()
def read_status(path: str | Path) -> Status:
    """Look at a run; changes nothing, and does not wait for the driver.

    Raises:
        RunError: there is no run in the folder, or it cannot be read.
    """
    run = read_run(path)
    is_searching = is_locked(run.path)
    session = run.environment.last
    began, until = _span(run, session, is_searching)
    underway = [t for t in (*run.trials, *run.replicates) if t.outcome is Outcome.RUNNING and t.key]
    sized = len({str(t.config["img_size"]) for t in run.trials if "img_size" in t.config}) > 1
    again = [t for t in run.replicates if t.outcome.is_trial and not t.taken]
    num_ended = sum(trial.is_ended_here for trial in run.trials)
    known = (*run.trials, *run.replicates)
    if not is_searching:
        known = tuple(trial for trial in known if trial.outcome is not Outcome.RUNNING)
    pace = pace_of(known, run.num_trials or None, run.epochs, began, until)
    best = max(run.complete, key=lambda trial: trial.top1 or 0.0, default=None)
    return Status(
        path=str(run.path),
        name=run.name,
        is_searching=is_searching,
        counts=dict(Counter(trial.outcome.value for trial in run.trials)),
        num_ended=num_ended,
        num_trials=run.num_trials or None,
        num_replicates=len(again),
        num_baselines=len(run.baselines),
        most_baselines=max(run.num_baselines, len(run.baselines)),
        epochs=run.epochs,
        underway=tuple(_underway(trial, run.costs, sized) for trial in underway),
        epochs_per_second=_rounded(pace.epochs_per_second, 3),
        seconds=round(max(0.0, until - began), 1),
        seconds_left=_rounded(pace.seconds_left, 1) if is_searching else None,
        best_top1=None if best is None else best.top1,
        best_trial=None if best is None else best.number,
        is_int8=run.is_int8,
        front_size=len(run.front),
        num_long=len(run.long.trainings),
        best_long=run.long.best,
        ended_by=session.ended_by,
    )


def status_text(status: Status) -> str:
    """A few lines for a terminal."""
    parts = [trials_text(status.num_ended, status.num_trials)]
    if status.num_replicates:
        parts.append(replicates_text(status.num_replicates))
    if status.most_baselines:
        parts.append(f"{status.num_baselines}/{status.most_baselines} baselines")
    parts.append(f"{_doing(status)}, {clock(status.seconds)}")
    pace = Pace(status.epochs_per_second, status.seconds_left)
    follow = status.num_baselines < status.most_baselines
    rates = rates_text(pace, baselines_follow=follow)
    if rates:
        parts.append(rates)
    if status.ended_by and not status.is_searching:
        parts.append(f"ended: {status.ended_by}")
    lines = [f"{status.path} ({status.name}): {', '.join(parts)}"]
    counts = ", ".join(f"{count} {outcome}" for outcome, count in status.counts.items())
    lines.append(f"  {counts or 'nothing drawn yet'}")
    for one in status.underway:
        top1 = "       " if one.top1 is None else f"{one.top1:5.2f} %"
        what = "" if status.is_searching else "interrupted at "
        epoch = f"{what}epoch {one.epoch}/{status.epochs}"
        again = "" if one.replicate_of is None else f"replicate of {one.replicate_of}  "
        lines.append(f"  trial {one.trial:<5} {epoch}  {top1}  {one.costs}  {again}{one.network}")
    if status.best_trial is not None:
        best = f"{status.best_top1:.2f} %{' in int8' * status.is_int8}"
        lines.append(f"  best {best} (trial {status.best_trial}); {status.front_size} on the front")
    if status.best_long is not None:
        lines.append(f"  {long_text(status.num_long, status.best_long)}")
    return "\n".join(lines)


def _doing(status: Status) -> str:
    """What the driver does now. Baselines follow the trials; those that decide the comparison are
    trained at several learning rates, and again for replicates."""
    if not status.is_searching:
        return "not searching"
    trials_left = status.num_trials is None or status.num_ended < status.num_trials
    if trials_left or status.underway or not status.most_baselines:
        return "searching"
    again = status.num_baselines >= status.most_baselines
    return "training some baselines again" if again else "training baselines"


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _span(run: Run, session: Session, is_searching: bool) -> tuple[float, float]:
    """When the last session began, and now or when it last ended a training; seconds since 1970."""
    now = time.time()
    try:
        began = datetime.fromisoformat(str(session.started)).timestamp()
    except ValueError:
        began = min((t.started for t in run.trials if t.started is not None), default=now)
    if is_searching:
        return began, now
    ends = (one.ended for one in (*run.trials, *run.replicates, *run.baselines))
    return began, max((end for end in ends if end is not None), default=began)


def _underway(trial: TrialRecord, costs: Sequence[str], sized: bool) -> Underway:
    network = network_of(trial, sized)
    spent = ", ".join(filter(None, (said(trial, cost) for cost in costs)))
    again = trial.replicate_of
    return Underway(trial.number, trial.epochs, again, trial.top1, trial.flops, spent, network)
