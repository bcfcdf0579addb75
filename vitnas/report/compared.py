"""Several runs beside each other: what can be compared, and by how much their fronts differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from vitnas.config.costs import COSTS, log_costs
from vitnas.config.differences import are_same_images
from vitnas.errors import RunError
from vitnas.noise import measure
from vitnas.pairing import Pairing, Scored, places_of, shares_of
from vitnas.pareto import hypervolume
from vitnas.records import TrialRecord
from vitnas.report.facts import pruner_text
from vitnas.report.marks import and_text
from vitnas.report.progress import corner_of
from vitnas.report.spent import Spent, spent_curve
from vitnas.report.text import NOTHING
from vitnas.run import Run
from vitnas.versus import error_of, interval_of

MOST = 6
_SURE = (0.025, 0.975)


@dataclass(frozen=True)
class Side:
    """A run in the comparison.

    Attributes:
        run: the run.
        name: of its folder; with more of its path where two runs have folders of one name.
        share: hypervolume of its front as a share of that of all fronts together, 0 to 1; None
            where there is none.
        curve: hypervolume over what was spent, all runs with the same corner.
    """

    run: Run
    name: str
    share: float | None
    curve: tuple[Spent, ...]


@dataclass(frozen=True)
class Gap:
    """The front of one run minus that of another, at equal FLOPs.

    Attributes:
        one, other: names of the runs.
        points: of expected top-1, as a mean over log FLOPs.
        interval: 95 % interval of it; None where a run does not say how many images score.
        low, high: the range of FLOPs that both fronts cover.
        ahead: share of this range, in log FLOPs, in which the first is above, 0 to 1.
        test: the same difference of test top-1, and its 95 % interval; None unless all members of
            both fronts have one, on equally many images.
    """

    one: str
    other: str
    points: float
    interval: tuple[float, float] | None
    low: float
    high: float
    ahead: float
    test: tuple[float, float, float] | None


@dataclass(frozen=True)
class Compared:
    """Runs that were compared.

    Attributes:
        sides: the runs, as given.
        gaps: of every two runs whose fronts have FLOPs in common.
        notes: what limits the comparison, a sentence each.
        differing: facts in which the runs differ, by name: a value for each run.
    """

    sides: tuple[Side, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    differing: Mapping[str, tuple[str, ...]]


def compare(runs: Sequence[Run]) -> Compared:
    """Compare two to six runs.

    Raises:
        RunError: a run is given twice, or objectives or images differ.
    """
    _check(runs)
    names = _names(runs)
    corner = corner_of(runs)
    fronts = [_points(run) for run in runs]
    joint = hypervolume(np.concatenate(fronts), corner)
    sides = tuple(
        Side(
            run,
            name,
            hypervolume(points, corner) / joint if len(points) and joint > 0 else None,
            tuple(spent_curve(run, corner)),
        )
        for run, name, points in zip(runs, names, fronts, strict=True)
    )
    pairs = combinations(range(len(runs)), 2)
    gaps = (_gap(sides[a], sides[b], seed=b) for a, b in pairs)
    return Compared(sides, tuple(gap for gap in gaps if gap), tuple(_notes(runs)), _differing(runs))


def check_folders(folders: Sequence[Path]) -> None:
    """Make sure that so many different runs are given as can be compared; reads nothing.

    Raises:
        RunError: they are too many, or one is given twice.
    """
    if len(folders) > MOST:
        raise RunError(f"{len(folders)} runs: at most {MOST} can be compared at a time")
    times = Counter(folder.resolve() for folder in folders)
    for folder in folders:
        if times[folder.resolve()] > 1:
            raise RunError(f"{folder}: is given twice; name different runs to compare")


def _check(runs: Sequence[Run]) -> None:
    check_folders([run.path for run in runs])
    first = runs[0]
    for run in runs[1:]:
        if (run.quality, run.costs) != (first.quality, first.costs):
            raise RunError(
                f"{run.path}: its objectives are {run.quality}, {and_text(run.costs)}, those of "
                f"{first.path} {first.quality}, {and_text(first.costs)}; only runs with the same "
                "objectives can be compared"
            )
        for fact in ("name", "num_classes", "fingerprint"):
            here, there = (one.environment.data.told().get(fact) for one in (run, first))
            if here and there and not _is_same(fact, here, there):
                raise RunError(
                    f"{run.path}: was searched on other images than {first.path} ({_fact(fact)} "
                    f"{_short(here)}, not {_short(there)}), so top-1 cannot be compared"
                )


def _is_same(fact: str, one: Any, other: Any) -> bool:
    return are_same_images(one, other) if fact == "fingerprint" else bool(one == other)


def _fact(name: str) -> str:
    return {"name": "data", "num_classes": "classes"}.get(name, name)


def _names(runs: Sequence[Run]) -> list[str]:
    """Folders' names; whole paths where they are not different."""
    short = [run.path.resolve().name for run in runs]
    return short if len(set(short)) == len(short) else [str(run.path) for run in runs]


def _points(run: Run) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The front to minimise: top-1 negated, then log costs; (0, d) where it is empty."""
    rows = [
        (-(trial.estimate or 0.0), *log_costs(run.costs, trial.costs(run.costs)))
        for trial in run.front
    ]
    return np.array(rows, dtype=float).reshape(len(rows), 1 + len(run.costs))


def _gap(one: Side, other: Side, seed: int) -> Gap | None:
    ours, theirs = _members(one.run, "a"), _members(other.run, "b")
    if not ours or not theirs:
        return None
    low = max(min(x.flops for x in ours), min(x.flops for x in theirs))
    high = min(
        max(trial.flops for trial in side.run.complete if trial.flops > 0) for side in (one, other)
    )
    if low > high:
        return None
    places = places_of(list(ours), list(theirs), low, high)
    shares = shares_of(places)
    trials = {**ours, **theirs}
    return Gap(
        one.name,
        other.name,
        points=sum(share * scored.top1 for scored, share in shares.items()),
        interval=_interval(one.run, other.run, shares, trials, seed),
        low=low,
        high=high,
        ahead=sum(place.gain > 0 for place in places) / len(places),
        test=_test(one.run, other.run, places, trials),
    )


def _members(run: Run, side: str) -> dict[Scored, TrialRecord]:
    """The front's members, each as a family of its own: nothing is between two of them."""
    return {
        Scored(trial.flops, trial.estimate or 0.0, trial.estimate or 0.0, f"{side}{trial.number}"):
        trial
        for trial in run.front
        if trial.flops > 0
    }  # fmt: skip


def _interval(
    one: Run,
    other: Run,
    shares: Mapping[Scored, float],
    trials: Mapping[Scored, TrialRecord],
    seed: int,
) -> tuple[float, float] | None:
    """From the draws of both runs; those of the second in another order, because the runs are
    independent and their draws begin alike."""
    if one.draws is None or other.draws is None:
        return None
    columns: dict[str, Any] = {}
    orders = (None, np.random.default_rng(seed))
    for run, side, order in zip((one, other), "ab", orders, strict=True):
        draws = run.draws
        assert draws is not None
        rows = draws.top1 if order is None else order.permutation(draws.top1)
        numbers = [trial.number for trial in draws.trials]
        columns |= {f"{side}{number}": rows[:, place] for place, number in enumerate(numbers)}
    total = sum(
        share * columns.get(scored.name, np.full(1, trials[scored].estimate or 0.0))
        for scored, share in shares.items()
    )
    low, high = np.quantile(total, _SURE).tolist()
    return low, high


def _test(
    one: Run, other: Run, places: Sequence[Pairing], trials: Mapping[Scored, TrialRecord]
) -> tuple[float, float, float] | None:
    images = {run.environment.data.num_test_images for run in (one, other)}
    shares = shares_of(places)
    means = {scored: trials[scored].mean_test_top1 for scored in shares}
    if len(images) != 1 or None in means.values():
        return None
    number = images.pop()
    if not number:
        return None
    tested = {
        scored._replace(top1=means[scored] or 0.0, trainings=len(trials[scored].test_trainings)):
        share
        for scored, share in shares.items()
    }  # fmt: skip
    scores = [t.test_trainings for run in (one, other) for t in run.complete if t.test_trainings]
    error, degrees = error_of(tested, number, measure(scores, number).without_prior)
    points = sum(share * scored.top1 for scored, share in tested.items())
    return points, *interval_of(points, error, degrees)


def _notes(runs: Sequence[Run]) -> Iterator[str]:
    """What a reader has to know before a difference is believed."""
    if len({run.environment.data.num_val_images for run in runs}) > 1 or _differ(runs, "data"):
        yield (
            "The runs do not score on the same part of the images, so a difference has the choice "
            "of images in it."
        )
    if _differ(runs, "proxy"):
        yield (
            "The short trainings differ, so a difference between fronts is also one between "
            "trainings."
        )
    if any(run.environment.data.name is None for run in runs):
        yield "A run does not say on what images it was searched; they are taken to be the same."
    ended = [sum(trial.is_ended_here for trial in run.trials) for run in runs]
    if any(done < run.num_trials for done, run in zip(ended, runs, strict=True)):
        yield "A run has not ended: it has fewer trials than it was asked for."
    if len(set(ended)) > 1:
        yield "The runs have different numbers of trials; the plots over epochs and time are fair."
    if any(COSTS[cost].is_measured for cost in runs[0].costs):
        devices = {t.measured_on for run in runs for t in run.trials if t.measured_on}
        if len(devices) > 1:
            yield "Costs were measured on different devices and cannot be compared."
    trainings = [{(trial.key, trial.curve) for trial in run.complete} for run in runs]
    if shared := len(set.union(*(a & b for a, b in combinations(trainings, 2)))):
        yield (
            f"{shared} {'training is' if shared == 1 else 'trainings are'} part of several runs, "
            f"as after --start-from, and {'counts' if shared == 1 else 'count'} as independent: "
            "intervals are too wide."
        )
    if not any(trial.replicates for run in runs for trial in run.complete):
        yield "No network was trained twice, so intervals do not contain the scatter over seeds."
    yield "Each front is one run: another seed of a search gives another front."


def _differ(runs: Sequence[Run], part: str) -> bool:
    parts = [run.space.get(part) for run in runs]
    return any(part != parts[0] for part in parts)


def _differing(runs: Sequence[Run]) -> dict[str, tuple[str, ...]]:
    told = [dict(_facts(run)) for run in runs]
    names = dict.fromkeys(name for facts in told for name in facts)
    rows = {name: tuple(facts.get(name, NOTHING) for facts in told) for name in names}
    return {name: values for name, values in rows.items() if len(set(values)) > 1}


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    told, last = run.environment, run.environment.last
    yield "seed", NOTHING if told.seed is None else str(told.seed)
    yield "trials asked for", str(run.num_trials or NOTHING)
    yield "sampler", last.sampler or NOTHING
    yield "pruner", pruner_text(last) or NOTHING
    yield "recipe tuned first", told.tuned or NOTHING
    device = ", ".join(sorted({trial.device for trial in run.trials if trial.device}))
    yield "device", device or NOTHING
    yield "git revision", last.git_revision or NOTHING
    for name, version in last.versions.items():
        yield f"version of {name}", str(version)
    for name, value in told.data.told().items():
        yield f"images: {name}", _short(value)
    for address, value in _leaves(dict(run.space), "space"):
        yield address, _short(value)


def _leaves(tree: Any, address: str) -> Iterator[tuple[str, Any]]:
    """The values of a space file by address; lists of plain values are one value."""
    if isinstance(tree, Mapping) and tree:
        for key, value in tree.items():
            yield from _leaves(value, f"{address}.{key}")
    elif isinstance(tree, list) and any(isinstance(value, Mapping) for value in tree):
        for index, value in enumerate(tree):
            yield from _leaves(value, f"{address}[{index}]")
    else:
        yield address, tree


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
