"""The front as plain text, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence

from vitnas.columns import columns
from vitnas.config.costs import COSTS, EXACT, cost_of
from vitnas.records import Outcome, TrialRecord
from vitnas.report.networks import network_lines
from vitnas.report.standing import is_repeated, mean_text, off_front, standing_text
from vitnas.report.tables import front_rows, measured_columns
from vitnas.report.text import cost_text, percent_text, plural
from vitnas.report.verdict import verdict
from vitnas.run import Run

_EXPECTED = "expected: from the scores of all networks; the front is the best by it"
_RAISED = (Outcome.FAILED, Outcome.DIVERGED, Outcome.OOM, Outcome.TIMEOUT)


def front_text(run: Run) -> str:
    """The front in aligned columns, cheapest first, or a line that says that it is empty."""
    rows = front_rows(run)
    if not rows:
        return "No trial has been trained to the end, so the front is empty." + _failures(run)
    costs = (*EXACT, *measured_columns(run))
    printed = (COSTS[cost].head for cost in costs)
    heads = ("trial", f"{run.quality} %", "expected %", "test %", *printed, "network")
    if is_repeated(run):
        return _repeated(run, costs, heads) + _failures(run)
    cells = (_cells(row.trial, row.network, costs) for row in rows)
    return "\n".join([*columns([heads, *cells], left=[-1]), *_note(run)]) + _failures(run)


def summary_text(run: Run) -> str:
    """The front, and its comparison with the baselines if there are any."""
    return "\n".join([front_text(run), *([verdict(run)] if run.baselines else [])])


def ended_text(run: Run) -> str:
    """How many trials the run has and why its last session ended early; empty if it did not."""
    why = run.environment.last.ended_by
    ended = sum(trial.is_ended_here for trial in run.trials)
    again = sum(trial.outcome.is_trial and not trial.taken for trial in run.replicates)
    trials = f"{ended} of {run.num_trials} trials" if run.num_trials else plural(ended, "trial")
    replicates = f", {plural(again, 'replicate')}" if again else ""
    return f"{trials}{replicates}: {why}" if why else ""


def _repeated(run: Run, costs: Sequence[str], heads: tuple[str, ...]) -> str:
    """The front with errors and chances, and further networks that may be on it."""
    shown = [*(row.trial for row in front_rows(run)), *off_front(run)]
    cells: list[tuple[str, ...]] = [
        (*heads[:1], f"{run.quality} % ± error", "of", "on the front", *heads[2:])
    ]
    for trial, line in zip(shown, network_lines(shown), strict=True):
        number, _, *rest = _cells(trial, line, costs)
        middle = (mean_text(run, trial), str(len(trial.trainings)), standing_text(run, trial))
        cells.append((number, *middle, *rest))
    lines = columns(cells, left=[-1])
    last = len(run.front) + 1
    note = "top-1: mean over the trainings; confident: on the front with a probability of 0.9"
    others = ["not on the front, but may be:", *lines[last:]] if lines[last:] else []
    return "\n".join([*lines[:last], *others, note, *_note(run)])


def _note(run: Run) -> list[str]:
    """What the column of expected top-1 is, if there is one; which trials were trained long."""
    long = list(dict.fromkeys(one.called for group in run.long.settings for one in group))
    told = f"trained long: {plural(len(long), 'network')} ({', '.join(long)})"
    return [*([] if run.noise is None else [_EXPECTED]), *([told] if long else [])]


def _failures(run: Run) -> str:
    """A line about failed trainings, with the first error; empty if none failed."""
    failed = [trial for trial in run.trials if trial.outcome in _RAISED]
    if not failed:
        return ""
    first, ended = failed[0], sum(trial.outcome.is_trial for trial in run.trials)
    return (
        f"\n{len(failed)} of {ended} trainings failed "
        f"(all are in trials.csv); the first, trial {first.number}: {first.error}"
    )


def _cells(trial: TrialRecord, network: str, costs: Sequence[str]) -> tuple[str, ...]:
    return (
        str(trial.number),
        percent_text(trial.top1),
        percent_text(trial.expected and trial.expected.top1),
        percent_text(trial.mean_test_top1),
        *(cost_text(cost, cost_of(trial, cost)) for cost in costs),
        network,
    )
