"""The tables of a run as plain rows: front, outcomes, bins of FLOPs, and the CSV files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vitnas.config.costs import MEASURED
from vitnas.records import BaselineRecord, Outcome, TrialRecord
from vitnas.report.longer import LONG_COLUMNS, long_columns
from vitnas.report.networks import network_lines
from vitnas.report.standing import error_of
from vitnas.report.tested import compare_by_test
from vitnas.run import Run

MEANINGS: Mapping[Outcome, str] = {
    Outcome.COMPLETE: "trained to the last epoch",
    Outcome.STOPPED: "stopped early by the pruner; top-1 is censored",
    Outcome.FAILED: "an error, or a worker lost too often",
    Outcome.DIVERGED: "the loss stopped being a number",
    Outcome.OOM: "device memory exhausted",
    Outcome.TIMEOUT: "longer than a training may take",
    Outcome.REFUSED: "outside the limits; never trained",
    Outcome.DUPLICATE: "the same network as an earlier trial; never trained again",
    Outcome.RUNNING: "in training, or interrupted",
}
BINS = 6
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class FrontRow:
    """A front member, compared with the next cheaper one.

    Attributes:
        trial: the member.
        network: its network in one line, without what holds for all members.
        gain: points of expected top-1 above the next cheaper member. None for the cheapest member,
            and if there are several costs: then no member is "the next cheaper".
        cost: its cost divided by that of the next cheaper member; None in the same cases.
        is_knee: whether it is the knee of the front.
    """

    trial: TrialRecord
    network: str
    gain: float | None
    cost: float | None
    is_knee: bool


def front_rows(run: Run) -> list[FrontRow]:
    """The front, sorted by the first cost."""
    members, knee = run.front, run.knee
    rows = []
    for index, (trial, line) in enumerate(zip(members, network_lines(members), strict=True)):
        before = members[index - 1] if index and len(run.costs) == 1 else None
        gain = None if before is None else (trial.estimate or 0.0) - (before.estimate or 0.0)
        cost = None if before is None else _ratio(trial, before, run.costs[0])
        rows.append(FrontRow(trial, line, gain, cost, trial is knee))
    return rows


def _ratio(trial: TrialRecord, before: TrialRecord, cost: str) -> float | None:
    (mine,), (theirs,) = trial.costs([cost]), before.costs([cost])
    return mine / theirs if theirs else None


def measured_columns(run: Run) -> tuple[str, ...]:
    """The costs that were measured in the run, as objectives or for limits."""
    return measured_costs(run.trials)


def measured_costs(trials: Iterable[TrialRecord]) -> tuple[str, ...]:
    """The costs that were measured for at least one of these trials."""
    known = {name for trial in trials for name in trial.measured}
    return tuple(name for name in MEASURED if name in known)


def outcome_counts(run: Run) -> list[tuple[Outcome, int]]:
    """Number of candidates of each outcome that occurred."""
    return [(outcome, run.count(outcome)) for outcome in Outcome if run.count(outcome)]


@dataclass(frozen=True)
class BinRow:
    """The trials whose FLOPs lie in [low, high); the last bin includes its upper end."""

    low: float
    high: float
    started: int
    complete: int
    stopped: int
    lost: int
    front: int


def flops_bins(run: Run) -> list[BinRow]:
    """Trials started and stopped, in bins equally wide in log FLOPs.

    One bin for every four trials, at most six.
    """
    trials = [trial for trial in run.trials if trial.outcome.is_trial and trial.flops > 0]
    if not trials:
        return []
    lowest = min(trial.flops for trial in trials)
    highest = max(trial.flops for trial in trials)
    number = min(BINS, -(-len(trials) // 4)) if highest > lowest else 1
    ratio = highest / lowest
    edges = [lowest * ratio ** (index / number) for index in range(number + 1)]
    inside: list[list[TrialRecord]] = [[] for _ in range(number)]
    for trial in trials:
        share = math.log(trial.flops / lowest) / math.log(ratio) if number > 1 else 0.0
        inside[min(int(share * number), number - 1)].append(trial)
    members = {trial.number for trial in run.front}
    pairs = zip(edges[:-1], edges[1:], inside, strict=True)
    return [_bin_row(low, high, group, members) for low, high, group in pairs]


def _bin_row(low: float, high: float, trials: list[TrialRecord], members: set[int]) -> BinRow:
    complete = sum(trial.outcome is Outcome.COMPLETE for trial in trials)
    stopped = sum(trial.outcome is Outcome.STOPPED for trial in trials)
    front = sum(trial.number in members for trial in trials)
    lost = len(trials) - complete - stopped
    return BinRow(low, high, len(trials), complete, stopped, lost, front)


def trials_csv(run: Run) -> str:
    """One row for each candidate and replicate; results/README.md explains the columns."""
    drawn = sorted({name for trial in run.trials for name in trial.params})
    members = {trial.number for trial in run.front}
    known = {trial.number: trial for trial in (*run.trials, *run.replicates, *run.complete)}
    trials = sorted(known.values(), key=lambda trial: trial.number)
    lines = network_lines(trials, whole=True)
    rows = (
        {
            **_trial_row(trial, members, line),
            **_noise_columns(run, trial),
            **long_columns(run, trial.number),
            **_params(trial),
        }
        for trial, line in zip(trials, lines, strict=True)
    )
    measured = measured_columns(run)
    columns = [*TRIAL_COLUMNS, *_float(run), *measured, *(("measured_on",) if measured else ())]
    return _csv_text([*columns, *_long(run), *(f"params.{name}" for name in drawn)], rows)


def _float(run: Run) -> tuple[str, ...]:
    """The column of top-1 in float, in a run whose top-1 is in int8."""
    return ("float_top1_percent",) if run.is_int8 else ()


def _long(run: Run) -> tuple[str, ...]:
    """The columns on long trainings, in a run that has one."""
    return LONG_COLUMNS if run.long.trainings else ()


TRIAL_COLUMNS = (
    "trial", "outcome", "front", "top1_percent", "test_top1_percent", "flops", "num_params",
    "epochs", "seconds", "seed", "device", "key", "duplicate_of", "network",
    "curve_top1_percent", "error", "num_trainings", "standard_error_points",
    "expected_top1_percent", "expected_error_points", "chance", "standing", "replicate_of",
)  # fmt: skip


def _trial_row(trial: TrialRecord, members: set[int], line: str) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "outcome": trial.outcome.value,
        "front": int(trial.number in members),
        "top1_percent": _rounded(trial.top1),
        "test_top1_percent": _rounded(trial.mean_test_top1),
        "float_top1_percent": _rounded(trial.float_top1),
        "flops": trial.flops or None,
        "num_params": trial.num_params or None,
        "epochs": trial.epochs,
        "seconds": _rounded(trial.seconds),
        "seed": trial.seed,
        "device": trial.device,
        "key": trial.key,
        "duplicate_of": trial.duplicate_of,
        "network": line,
        **trial.measured,
        "measured_on": trial.measured_on,
        "curve_top1_percent": ";".join(str(_rounded(value)) for value in trial.curve),
        "error": trial.error,
        "replicate_of": trial.replicate_of,
    }


def _noise_columns(run: Run, trial: TrialRecord) -> dict[str, Any]:
    if trial.replicate_of is not None:
        return {}
    return {
        "num_trainings": len(trial.trainings) if trial.outcome is Outcome.COMPLETE else None,
        "standard_error_points": _rounded(error_of(run, trial)),
        "expected_top1_percent": _rounded(trial.expected and trial.expected.top1),
        "expected_error_points": _rounded(trial.expected and trial.expected.error),
        "chance": _rounded(run.chances.get(trial.number)),
        "standing": run.standing(trial),
    }


def _params(trial: TrialRecord) -> dict[str, Any]:
    return {f"params.{name}": value for name, value in trial.params.items()}


FRONT_COLUMNS = (
    "trial", "top1_percent", "test_top1_percent", "flops", "num_params", "gain_points",
    "flops_ratio", "knee", "key", "network", "num_trainings", "standard_error_points",
    "expected_top1_percent", "expected_error_points", "chance", "standing",
)  # fmt: skip


def front_csv(run: Run) -> str:
    """One row for each member of the front, cheapest first."""
    ratio = f"{run.costs[0]}_ratio"
    tested = compare_by_test(run)
    columns = [ratio if name == "flops_ratio" else name for name in FRONT_COLUMNS]
    columns += ["test_front"] if tested is not None else []
    if len(run.costs) > 1:
        columns = [name for name in columns if name not in ("gain_points", ratio)]
    lines = network_lines(run.front, whole=True)
    rows = (
        {
            **_trial_row(row.trial, set(), line),
            **_front_columns(row, ratio),
            "test_front": None if tested is None else tested.is_on_front(row.trial),
            **_noise_columns(run, row.trial),
            **long_columns(run, row.trial.number),
        }
        for row, line in zip(front_rows(run), lines, strict=True)
    )
    return _csv_text([*columns, *_float(run), *measured_columns(run), *_long(run)], rows)


def _front_columns(row: FrontRow, ratio: str) -> dict[str, Any]:
    return {
        "gain_points": _rounded(row.gain),
        ratio: _rounded(row.cost),
        "knee": int(row.is_knee),
    }


BASELINE_COLUMNS = (
    "family", "width", "outcome", "top1_percent", "test_top1_percent", "flops", "num_params",
    "epochs", "seconds", "seed", "curve_top1_percent", "error", "num_trainings", "lr",
    "top1_percent_by_lr",
)  # fmt: skip


def baselines_csv(run: Run) -> str:
    """The baselines, one row each."""
    return _csv_text(BASELINE_COLUMNS, map(_baseline_row, run.baselines))


def _baseline_row(one: BaselineRecord) -> dict[str, Any]:
    return {
        "family": one.family,
        "width": one.width,
        "outcome": one.outcome.value,
        "top1_percent": _rounded(one.top1),
        "test_top1_percent": _rounded(one.mean_test_top1),
        "flops": one.flops or None,
        "num_params": one.num_params or None,
        "epochs": len(one.curve),
        "seconds": _rounded(one.seconds),
        "seed": one.seed,
        "curve_top1_percent": ";".join(str(_rounded(value)) for value in one.curve),
        "error": one.error,
        "num_trainings": len(one.trainings) if one.outcome is Outcome.COMPLETE else None,
        "lr": one.lr or None,
        "top1_percent_by_lr": ";".join(
            f"{lr:g}={'' if top1 is None else _rounded(top1)}" for lr, top1 in one.rates
        ),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _harmless(value: Any) -> Any:
    """`value`, with an apostrophe before text that a spreadsheet would run as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
