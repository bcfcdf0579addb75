"""The words and numbers of a report, as text for both templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot
from typing import Any

from vitnas.config.costs import COSTS, cost_of
from vitnas.errors import typed
from vitnas.records import Outcome, TrialRecord
from vitnas.report.band import band_rows, band_text
from vitnas.report.caveats import sentences
from vitnas.report.chance import chance_of
from vitnas.report.checklist import checklist
from vitnas.report.effects_text import effect_views
from vitnas.report.lead import key_numbers, lead, title
from vitnas.report.long_against import next_baseline
from vitnas.report.longer import long_rows
from vitnas.report.marks import and_text
from vitnas.report.networks import network_lines
from vitnas.report.papers import papers_text
from vitnas.report.plots import drawable, drawn_baselines, drawn_papers
from vitnas.report.progress import reached, reference_point, volume_curve
from vitnas.report.spent import spent_text, step_rows
from vitnas.report.standing import (
    estimate_error,
    expected_text,
    is_repeated,
    mean_text,
    off_front,
    standing_text,
)
from vitnas.report.tables import (
    MEANINGS,
    FrontRow,
    flops_bins,
    front_rows,
    measured_columns,
    outcome_counts,
)
from vitnas.report.tested import by_test_text, compare_by_test
from vitnas.report.text import (
    cost_text,
    count_text,
    named_cost_text,
    percent_text,
    plural,
    signed_text,
)
from vitnas.report.trust import assess
from vitnas.report.verdict import baseline_rows, finishing_command, rates_text, verdict
from vitnas.report.whole_cost import cost_rows, whole_cost_text
from vitnas.run import Run

MOST_ERRORS = 8
View = dict[str, Any]


def summary_view(run: Run) -> View:
    """All values about the trials. Unknown ones are empty, never missing."""
    rows, tested, chance = front_rows(run), compare_by_test(run), chance_of(run)
    return {
        "title": title(run),
        "verdict": verdict(run),
        "baselines": baseline_rows(run),
        "baseline_rates": rates_text(run),
        "finishing_command": finishing_command(run),
        "baselines_repeated": any(one.replicates for one in run.baselines),
        "summary": lead(run),
        "keys": key_numbers(run),
        "rows": [
            _row_view(row, rows[index - 1], run) | {"by_test": by_test_text(tested, row.trial)}
            for index, row in enumerate(rows)
        ],
        "axes": and_text(run.costs),
        "bound": _bound(run.costs),
        "only_cost": COSTS[run.costs[0]].noun if len(run.costs) == 1 else "",
        "measured_heads": [f"{COSTS[c].noun}, {COSTS[c].unit}" for c in measured_columns(run)],
        "is_repeated": is_repeated(run),
        "has_chances": bool(run.chances),
        "on_front": "on the front" if is_repeated(run) else "on the front, by images alone",
        "chances_hint": CHANCES_HINT + ("" if is_repeated(run) else f" {_BY_IMAGES}"),
        "has_errors": run.noise is not None,
        "expected_hint": "" if run.noise is None else EXPECTED_HINT,
        "others": _other_views(run),
        "any_test": tested is not None,
        "export_command": _export_command(run, rows),
        "band": band_text(run),
        "band_rows": band_rows(run),
        "papers": papers_text(run),
        "any_stopped": bool(drawable(run, Outcome.STOPPED)),
        "any_paper_drawn": bool(drawn_papers(run)),
        "any_baseline_drawn": any(drawn_baselines(run, cost) for cost in run.costs),
        "first_cost": COSTS[run.costs[0]].noun,
        "long_rows": long_rows(run),
        "next_baseline": next_baseline(run),
        **effect_views(run),
        "caveats": sentences(assess(run)),
        "checklist": checklist(run),
        "outcomes": _outcome_views(run),
        "errors": error_rows(run),
        "bins": _bin_views(run),
        "whole_cost": cost_rows(run),
        "whole_cost_text": whole_cost_text(run),
        "progress": progress_text(run),
        "chance": chance,
        "spent": spent_text(run, chance),
        **dict(zip(("steps", "steps_note"), step_rows(run), strict=True)),
        "reference": _reference_text(run),
        "extent": _extent(run),
    }


def _bound(costs: Sequence[str]) -> str:
    """`at most` or `at least`: how the step line's points relate to the value on their axis."""
    more = [cost for cost in costs if COSTS[cost].sign < 0]
    if len(more) == len(costs):
        return "at least"
    return f"at most (at least for {and_text(more)})" if more else "at most"


EXPECTED_HINT = (
    "The front is the best by expected top-1. It follows from the scores of all networks, those of "
    "similar networks above all, because one score on few images is partly chance."
)

CHANCES_HINT = (
    "The number after confident or plausible is the probability that the network is on the front."
)
_BY_IMAGES = (
    "Without replicates these probabilities rest on the error of the images alone and on the model "
    "of expected top-1, so they are too sure of themselves."
)


def _row_view(row: FrontRow, before: FrontRow, run: Run) -> View:
    trial = row.trial
    return {
        "number": trial.number,
        "is_knee": row.is_knee and len(run.front) > 2,
        "top1": mean_text(run, trial),
        "expected": expected_text(trial),
        "trainings": len(trial.trainings),
        "standing": standing_text(run, trial),
        "test": percent_text(trial.mean_test_top1),
        "flops": count_text(trial.flops),
        "params": count_text(trial.num_params or None),
        "measured": _measured(trial, run),
        "gain": signed_text(row.gain),
        "cost": percent_text(row.cost),
        "unsure": row.gain is not None and row.gain < _difference_error(row, before, run),
        "network": row.network,
        "is_long": run.long.of(trial.number) is not None,
    }


def _other_views(run: Run) -> list[View]:
    """Networks that may be on the true front, told as briefly as those on it."""
    others = off_front(run)
    lines = network_lines([*run.front, *others])[len(run.front) :]
    return [_other_view(trial, line, run) for trial, line in zip(others, lines, strict=True)]


def _other_view(trial: TrialRecord, network: str, run: Run) -> View:
    return {
        "number": trial.number,
        "top1": mean_text(run, trial),
        "expected": expected_text(trial),
        "trainings": len(trial.trainings),
        "standing": standing_text(run, trial),
        "flops": count_text(trial.flops),
        "params": count_text(trial.num_params or None),
        "measured": _measured(trial, run),
        "network": network,
        "is_long": run.long.of(trial.number) is not None,
    }


def _measured(trial: TrialRecord, run: Run) -> list[str]:
    """Amounts without their units, which stand in the heads: a row has little room."""
    texts = {cost: cost_text(cost, cost_of(trial, cost)) for cost in measured_columns(run)}
    return [text.removesuffix(f" {COSTS[cost].unit}") for cost, text in texts.items()]


def _difference_error(row: FrontRow, before: FrontRow, run: Run) -> float:
    """Standard error of the difference to the next cheaper member, in points; 0 if unknown."""
    return hypot(*(estimate_error(run, trial) or 0.0 for trial in (row.trial, before.trial)))


def _export_command(run: Run, rows: list[FrontRow]) -> str:
    chosen = next((row.trial for row in rows if row.is_knee), None)
    number = "N" if chosen is None else str(chosen.number)
    return f"vitnas export {typed(run.path)} --trial {number} --to my_network"


def _outcome_views(run: Run) -> list[View]:
    total = max(len(run.trials), 1)
    return [
        {
            "name": outcome.value,
            "count": f"{count:,}",
            "share": round(100 * count / total, 2),
            "meaning": MEANINGS[outcome],
        }
        for outcome, count in outcome_counts(run)
    ]


def error_rows(run: Run) -> list[dict[str, str]]:
    """The most frequent errors of trials that failed, with the numbers of these trials."""
    wanted = (Outcome.FAILED, Outcome.DIVERGED, Outcome.OOM, Outcome.TIMEOUT)
    found: dict[str, list[int]] = {}
    for trial in run.trials:
        if trial.outcome in wanted and trial.error:
            found.setdefault(" ".join(trial.error.split()), []).append(trial.number)
    commonest = sorted(found.items(), key=lambda item: -len(item[1]))[:MOST_ERRORS]
    return [{"message": text, "trials": _numbers(numbers)} for text, numbers in commonest]


def _numbers(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:6]))
    return shown if len(numbers) <= 6 else f"{shown} and {len(numbers) - 6:,} more"


def _bin_views(run: Run) -> list[Mapping[str, Any]]:
    bins = flops_bins(run)
    fullest = max((row.started for row in bins), default=1) or 1
    return [
        {
            "range": _range_text(row.low, row.high),
            "started": row.started,
            "complete": row.complete,
            "stopped": row.stopped,
            "lost": row.lost,
            "front": row.front,
            "width": round(100 * row.started / fullest, 1),
        }
        for row in bins
    ]


def _range_text(low: float, high: float) -> str:
    return count_text(low) if high <= low else f"{count_text(low)} – {count_text(high)}"


def progress_text(run: Run) -> str:
    """After how many trials the front was nearly final; empty below two complete trials."""
    curve = volume_curve(run)
    if len(curve) < 2:
        return ""
    nearly, almost = reached(curve, 0.95), reached(curve, 0.99)
    return (
        f"95 % of the {_extent(run)} under the final front was reached after "
        f"{plural(nearly or 0, 'complete trial')}, 99 % after {almost:,}, of {len(curve):,}."
    )


def _reference_text(run: Run) -> str:
    top1, *dearest = reference_point(run)
    parts: dict[str, list[str]] = {}
    for cost, value in zip(run.costs, dearest, strict=True):
        side = "below" if COSTS[cost].sign > 0 else "above"
        parts.setdefault(side, []).append(named_cost_text(cost, value))
    sides = (f"{side} {', '.join(texts)}" for side, texts in parts.items())
    corner = " and ".join(
        (f"above the {percent_text(top1, 1)} % top-1 of the worst network", *sides)
    )
    logs = " × ".join(f"ln {COSTS[cost].noun}" for cost in run.costs)
    return f"in top-1 points × {logs}, {corner}"


def _extent(run: Run) -> str:
    return "area" if len(run.costs) == 1 else "volume"
