"""The front as plain text, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence

from vitnas.config.costs import EXACT, HEADS
from vitnas.records import Outcome, Run
from vitnas.report.tables import FrontRow, front_rows, measured_columns
from vitnas.report.text import cost_text, percent_text

_RAISED = (Outcome.FAILED, Outcome.DIVERGED, Outcome.OOM, Outcome.TIMEOUT)


def front_text(run: Run) -> str:
    """The front, cheapest first, in aligned columns; says so when it is empty."""
    rows = front_rows(run)
    if not rows:
        return "No trial has been trained to the end, so the front is empty." + _failures(run)
    costs = (*EXACT, *measured_columns(run))
    heads = ("trial", "top-1 %", "test %", *(HEADS[cost] for cost in costs), "network")
    cells = [heads, *(_cells(row, costs) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads) - 1)]
    return "\n".join(_line(line, widths) for line in cells) + _failures(run)


def _failures(run: Run) -> str:
    """A line on the trainings that raised, with the first reason; nothing without any."""
    failed = [trial for trial in run.trials if trial.outcome in _RAISED]
    if not failed:
        return ""
    first, ended = failed[0], sum(trial.outcome.is_trial for trial in run.trials)
    return (
        f"\n{len(failed)} of {ended} trainings failed "
        f"(all are in trials.csv); the first, trial {first.number}: {first.error}"
    )


def _cells(row: FrontRow, costs: Sequence[str]) -> tuple[str, ...]:
    trial = row.trial
    return (
        str(trial.number),
        percent_text(trial.top1),
        percent_text(trial.test_top1),
        *(cost_text(cost, getattr(trial, cost)) for cost in costs),
        row.network,
    )


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    numbers = (cell.rjust(width) for cell, width in zip(cells, widths, strict=False))
    return "  ".join([*numbers, cells[-1]])
