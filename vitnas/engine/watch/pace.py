"""How fast a run is and what time is left: the same for the display and for `vitnas status`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from vitnas.records import Outcome, TrialRecord


@dataclass(frozen=True)
class Pace:
    """How fast a session trains.

    Attributes:
        epochs_per_second: over all workers, since the first training began.
        seconds_left: until the trials of the run have ended; None once they have, or where the run
            has no number of trials. Both are None before the first training has ended.
    """

    epochs_per_second: float | None = None
    seconds_left: float | None = None


def pace_of(
    trials: Iterable[TrialRecord], num_trials: int | None, epochs: int, began: float, now: float
) -> Pace:
    """The pace of the session that began at `began`.

    A future training is expected to take the average time. Running trainings count in this average
    with their expected total time: short ones end first, so ended ones alone would make the
    estimate too short. The start of the workers is not part of the pace.

    Args:
        trials: of the run, replicates included.
        num_trials: how many the run shall have; None = no bound.
        epochs: of a full training.
        began, now: seconds since 1970.
    """
    trials = [trial for trial in trials if not trial.taken]
    ended = [t for t in trials if t.outcome.is_trial and (t.ended or 0.0) >= began]
    running = [t for t in trials if t.outcome is Outcome.RUNNING and t.key]
    num_epochs, seconds = sum(t.epochs for t in ended), sum(t.seconds or 0.0 for t in ended)
    if not num_epochs or not seconds:
        return Pace()
    first = max(began, min((t.ended or now) - (t.seconds or 0.0) for t in ended))
    length = fmean([t.epochs for t in ended if t.replicate_of is None] or [epochs])
    under_way = [_Running(t, first, now, seconds / num_epochs, length) for t in running]
    elapsed = max(now - first, 1e-9)
    rate = (num_epochs + sum(one.trained for one in under_way)) / elapsed
    num_ended = sum(trial.is_ended_here for trial in trials)
    if num_trials is None or num_ended >= num_trials:
        return Pace(rate)
    at_a_time = max((seconds + sum(one.elapsed for one in under_way)) / elapsed, 1e-9)
    rest = [one.rest for one in under_way]
    whole = (seconds + sum(one.elapsed + one.rest for one in under_way)) / len([*ended, *running])
    to_start = max(0, num_trials - num_ended - len(running))
    return Pace(rate, max([(to_start * whole + sum(rest)) / at_a_time, *rest]))


class _Running:
    """A running training: seconds elapsed, epochs trained (the part of the next one that its time
    stands for included), and seconds that it still takes."""

    def __init__(
        self, trial: TrialRecord, first: float, now: float, each: float, length: float
    ) -> None:
        self.elapsed = max(0.0, now - max(first, trial.started or first))
        self.trained = min(max(self.elapsed / each, float(trial.epochs)), trial.epochs + 0.95)
        own = self.elapsed / self.trained if self.trained else each
        self.rest = (max(length, trial.epochs + 1.0) - self.trained) * own
