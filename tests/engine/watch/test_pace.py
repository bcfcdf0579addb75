"""Time left: honest, smooth, and the same for the display and the status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vitnas.engine.watch.pace import Pace, pace_of
from vitnas.records import Outcome, TrialRecord

EPOCHS, START = 10, 30.0


def simulated(now: float, durations: list[float], workers: int) -> list[TrialRecord]:
    """The records at `now` of a session that began at 0 and whose workers came at `START`."""
    free, records = [START] * workers, []
    for number, seconds in enumerate(durations):
        worker = free.index(min(free))
        began, ended = free[worker], free[worker] + seconds
        free[worker] = ended
        handed_out = 0.0 if began == START else began
        if handed_out > now:
            continue
        epochs = int(EPOCHS * min(1.0, max(0.0, now - began) / seconds))
        record = TrialRecord(number, outcome=Outcome.RUNNING, key="k", started=handed_out)
        record = replace(record, curve=(50.0,) * epochs)
        if now >= ended:
            record = replace(record, outcome=Outcome.COMPLETE, seconds=seconds, ended=ended)
        records.append(record)
    return records


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_time_left_falls_like_a_clock(workers: int) -> None:
    durations = [10.0] * 24
    end = START + 240.0 / workers
    for now in range(int(START) + 11, int(end)):
        pace = pace_of(simulated(now, durations, workers), 24, EPOCHS, 0.0, now)
        assert pace.seconds_left == pytest.approx(end - now, rel=0.06, abs=1.5), now
        assert pace.epochs_per_second == pytest.approx(workers, rel=0.06)


def test_short_trainings_that_end_first_promise_nothing() -> None:
    """One worker has ended five short ones, the other is in the middle of a long one."""
    durations = [50.0, 5.0, 5.0, 5.0, 5.0, 5.0] + [50.0, 5.0] * 9
    left = pace_of(simulated(START + 26, durations, 2), 24, EPOCHS, 0.0, START + 26).seconds_left
    assert left == pytest.approx((25 + 4 + 17 * (5 * 5 + 50 + 5) / 7) / 2, rel=0.1)
    assert left is not None
    assert left > 1.7 * 19 * 5 / 2, "what the ended ones alone would promise"


def test_the_last_training_is_waited_for() -> None:
    durations = [10.0] * 7 + [40.0]
    now = START + 55.0
    left = pace_of(simulated(now, durations, 2), 8, EPOCHS, 0.0, now).seconds_left
    assert left is not None
    assert left >= 1.0, "it is in its seventh epoch of ten"


def test_nothing_is_promised_before_the_first_training_has_ended() -> None:
    assert pace_of([], 24, EPOCHS, 0.0, 10.0) == Pace()
    assert pace_of(simulated(START + 5, [10.0] * 4, 2), 4, EPOCHS, 0.0, START + 5) == Pace()


def test_earlier_sessions_and_other_runs_are_no_pace() -> None:
    trials = simulated(1000.0, [10.0] * 4, 2)
    assert pace_of(trials, 8, EPOCHS, began=500.0, now=1000.0) == Pace()
    taken = [replace(trial, taken=True) for trial in trials]
    assert pace_of(taken, 8, EPOCHS, began=0.0, now=1000.0) == Pace()


def test_no_bound_and_replicates_have_no_time_left() -> None:
    trials = simulated(START + 21, [10.0] * 4, 2)
    assert pace_of(trials, None, EPOCHS, 0.0, START + 21).seconds_left is None
    assert pace_of(trials, 4, EPOCHS, 0.0, START + 21).seconds_left is None
    assert pace_of(trials, 4, EPOCHS, 0.0, START + 21).epochs_per_second is not None
