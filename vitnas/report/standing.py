"""Errors of top-1, and which networks are confident or plausible members of the front.

Without replicates errors are binomial, and the report says so beside the chances: the binomial
error does not include the scatter of trainings with other seeds.
"""

from __future__ import annotations

from vitnas.noise import Expected
from vitnas.records import Outcome, TrialRecord
from vitnas.report.text import NOTHING, percent_text
from vitnas.run import Run


def is_repeated(run: Run) -> bool:
    """Whether any network was trained to the end more than once."""
    return any(trial.replicates for trial in run.trials)


def expected_text(trial: TrialRecord) -> str:
    """`96.38 ± 0.41`: expected top-1 in percent and its standard error; a dash if not known."""
    if trial.expected is None:
        return NOTHING
    return f"{percent_text(trial.expected.top1)} ± {percent_text(trial.expected.error)}"


def error_of(run: Run, trial: TrialRecord) -> float | None:
    """Standard error of a trial's top-1 in points; None if it is not known."""
    if run.noise is None or trial.outcome is not Outcome.COMPLETE or trial.top1 is None:
        return None
    return run.noise.error(trial.top1, len(trial.trainings))


def estimate_error(run: Run, trial: TrialRecord) -> float | None:
    """Standard error in points of the top-1 by which a trial is ranked; None if not known."""
    return error_of(run, trial) if trial.expected is None else trial.expected.error


def estimated(run: Run, trial: TrialRecord) -> Expected:
    """The top-1 by which a trial is ranked, and its standard error; 0 where one is not known."""
    return Expected(trial.estimate or 0.0, estimate_error(run, trial) or 0.0)


def open_trials(run: Run) -> list[TrialRecord]:
    """Networks that are on the front or plausible, but not confident, cheapest first."""
    confident = {trial.number for trial in run.confident}
    candidates = {trial.number: trial for trial in (*run.front, *run.plausible)}
    chosen = (trial for number, trial in candidates.items() if number not in confident)
    return sorted(chosen, key=lambda trial: (trial.flops, trial.number))


def off_front(run: Run) -> list[TrialRecord]:
    """Networks that may be on the true front, but are not on the front, cheapest first."""
    members = {trial.number for trial in run.front}
    return [t for t in (*run.confident, *run.plausible) if t.number not in members]


def standing_text(run: Run, trial: TrialRecord) -> str:
    """`confident 0.97`, `plausible 0.41`, only the number below 0.1, or a dash if unknown."""
    chance = run.chances.get(trial.number)
    if chance is None:
        return NOTHING
    return f"{run.standing(trial) or ''} {percent_text(chance)}".strip()


def mean_text(run: Run, trial: TrialRecord) -> str:
    """`96.38 ± 0.41`: top-1 in percent and its standard error in points."""
    error = error_of(run, trial)
    top1 = percent_text(trial.top1)
    return top1 if error is None else f"{top1} ± {percent_text(error)}"
