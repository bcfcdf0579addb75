"""What a run took from end to end, with what was refused and failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple

from vitnas.engine.batch.book import read_entries
from vitnas.engine.batch.references import FILE_NAME as BASELINES
from vitnas.engine.store.folder import TUNE_FOLDER
from vitnas.engine.tuning.result import BOOK_FILE
from vitnas.errors import VitnasError
from vitnas.records import Outcome, TrialRecord
from vitnas.report.text import NOTHING, duration_text, plural
from vitnas.run import Run


class KindCost(NamedTuple):
    """What trainings of one kind took.

    Attributes:
        what: their outcome, or their purpose.
        number: how many there are.
        seconds: of those with a time, added up over workers; None where none has one.
        gpu_seconds: seconds times the share of a GPU, with lost attempts where they were counted;
            0 on the CPU, None where it is not known.
    """

    what: str
    number: int
    seconds: float | None
    gpu_seconds: float | None


def costs_of(run: Run) -> list[KindCost]:
    """What the candidates took by outcome, then replicates, baselines and tuning, then all.

    What another run has trained costs nothing here.
    """
    share = gpu_share(run)
    groups: list[tuple[str, Sequence[TrialRecord]]] = [
        (outcome.value, [t for t in run.trials if t.outcome is outcome and not t.taken])
        for outcome in Outcome
    ]
    groups.append(("taken over from another run", [t for t in run.trials if t.taken]))
    groups.append(("replicates", [t for t in run.replicates if not t.taken]))
    found = [_cost(what, trials, share) for what, trials in groups if trials]
    baselines, taken = _times(run.path / BASELINES)
    if not baselines and not taken:
        baselines = [one.seconds for one in run.baselines]
    tuning, _ = _times(run.path / TUNE_FOLDER / BOOK_FILE)
    for what, times in (("baselines", baselines), ("tuning", tuning)):
        gpu = _sum(_on_gpu(seconds, share) for seconds in times)
        found += [KindCost(what, len(times), _sum(times), gpu)] if times else []
    found += [KindCost("baselines of another run", taken, 0.0, 0.0)] if taken else []
    return [*found, _total(found)] if found else []


def _cost(what: str, trials: Sequence[TrialRecord], share: float | None) -> KindCost:
    trained = [one for one in trials if one.outcome.is_trial and not one.taken]
    times = [one.seconds for one in trained]
    counted = [gpu_seconds_of(one, share) for one in trained]
    return KindCost(what, len(trials), _sum(times), _sum(counted))


def _times(path: Path) -> tuple[list[float | None], int]:
    """Seconds of the trainings in a file of answers, and how many more another run has made; none
    where it is missing or damaged."""
    try:
        entries = {entry.key: entry for entry in read_entries(path)}.values()
    except VitnasError:
        return [], 0
    times: list[float | None] = [entry.answer.seconds for entry in entries if not entry.taken]
    return times, len(entries) - len(times)


def gpu_seconds_of(trial: TrialRecord, share: float | None) -> float | None:
    """GPU-seconds of a trial, with lost attempts where they were counted; see `KindCost`."""
    return trial.gpu_seconds or _on_gpu(trial.seconds, share)


def _on_gpu(seconds: float | None, share: float | None) -> float | None:
    if share == 0:
        return 0.0
    return None if seconds is None or share is None else share * seconds


def _total(costs: Sequence[KindCost]) -> KindCost:
    seconds, gpu = (_sum(values) for values in list(zip(*costs, strict=True))[2:])
    return KindCost("all", sum(one.number for one in costs), seconds, gpu)


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if known or not found else None


def gpu_share(run: Run) -> float | None:
    """The share of a GPU that a training had, 0 for the CPU; None if sessions differ or are
    silent."""
    shares = {session.gpus_per_trial for session in run.environment.sessions}
    return shares.pop() if len(shares) == 1 else None


def clock_seconds(run: Run) -> float | None:
    """Time by the clock of all sessions, each from its start to the end of its last training.

    None where a session does not say when it started, or no training when it ended.
    """
    starts = [_moment(session.started) for session in run.environment.sessions]
    known = sorted(start for start in starts if start is not None)
    records = (*run.trials, *run.replicates, *run.baselines)
    ends = [one.ended for one in records if one.ended is not None]
    if len(known) < len(starts) or not known or not ends:
        return None
    return sum(
        max((end for end in ends if start <= end < following), default=start) - start
        for start, following in pairwise([*known, inf])
    )


def _moment(started: str | None) -> float | None:
    try:
        return None if started is None else datetime.fromisoformat(started).timestamp()
    except ValueError:
        return None


def cost_rows(run: Run) -> list[dict[str, str]]:
    """The table as text. GPU-hours are empty where no GPU was used."""
    costs = costs_of(run)
    on_gpu = any(one.gpu_seconds != 0 for one in costs)
    return [
        {
            "what": one.what,
            "number": f"{one.number:,}",
            "seconds": "none" if one.seconds == 0 else duration_text(one.seconds),
            "gpu": hours_text(one.gpu_seconds) if on_gpu else "",
        }
        for one in costs
    ]


def hours_text(seconds: float | None) -> str:
    """Seconds as hours in three digits; a dash for None."""
    return NOTHING if seconds is None else f"{seconds / 3600:.3g}"


def whole_cost_text(run: Run) -> str:
    """How long it took by the clock, and what is in no number."""
    clock = clock_seconds(run)
    if clock is None:
        took = "How long the sessions took by the clock is not recorded."
    else:
        took = (
            f"By the clock the sessions took {duration_text(clock)}, each from its start to the "
            "end of its last training, with proposals and waiting; tuning comes before."
        )
    here = (one for one in (*run.trials, *run.replicates) if not one.taken)
    number = sum(one.outcome.is_trial and one.seconds is None for one in here)
    have = "has" if number == 1 else "have"
    lost = f" {plural(number, 'training')} {have} no time and no part in the sums."
    return f"{took}{lost * bool(number)} Scoring on the test split is not timed."
