"""Compares samplers and pruners by replay: means over seeds with intervals, as text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np

from vitnas.columns import columns
from vitnas.engine.pruning import CONFIDENCE, PrunerName
from vitnas.engine.samplers import SamplerName
from vitnas.replay.simulation import Trace, replay
from vitnas.replay.table import Table
from vitnas.words import plural

MEASURES = {"volume": "above chance", "strict": "above the table's worst network"}
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
_RESAMPLES = 2000


@dataclass(frozen=True)
class SeedMean:
    """A mean over seeds.

    Attributes:
        mean: the mean. A seed that never reached the goal counts with the whole table.
        low, high: 95 % percentile interval of the mean, by bootstrap over the seeds; None for one
            seed, which tells of no scatter.
        never: number of seeds that never reached it.
    """

    mean: float
    low: float | None
    high: float | None
    never: int = 0


@dataclass(frozen=True)
class Pair:
    """A sampler and a pruner, replayed with several seeds."""

    sampler: SamplerName
    pruner: PrunerName
    traces: tuple[Trace, ...]

    def reach(self, share: float, of: str, by: str, whole: float) -> SeedMean:
        """Mean of `Trace.reach`. A trace that never reached `share` counts as `whole`."""
        found = [trace.reach(share, of, by) for trace in self.traces]
        never = sum(value is None for value in found)
        return _seed_mean([whole if value is None else value for value in found], never)

    def at(self, epochs: float, of: str) -> SeedMean:
        return _seed_mean([trace.at(epochs, of) for trace in self.traces])

    @property
    def stopped(self) -> int:
        """Number of trainings stopped early, summed over seeds."""
        return sum(len(trace.stopped) for trace in self.traces)

    @property
    def lost(self) -> int:
        """How many of these were on the whole table's front."""
        return sum(trace.lost for trace in self.traces)


def compare(
    table: Table,
    samplers: Iterable[SamplerName],
    pruners: Iterable[PrunerName],
    *,
    seeds: int = 20,
    workers: int = 1,
    trials: int | None = None,
    confidence: float = CONFIDENCE,
    bins: int = 1,
    processes: int = 1,
    listener: Callable[[str], None] = lambda line: None,
) -> list[Pair]:
    """Replay every pair of a sampler and a pruner with the seeds 0, 1, 2, ...

    Args:
        table: the networks with their recorded trainings.
        samplers, pruners: their names.
        seeds: number of searches for each pair.
        workers, trials, confidence, bins: as for `replay`.
        processes: number of searches at the same time. It does not change the results.
        listener: called with a line after each pair.
    """
    from joblib import Parallel, delayed

    asked = list(product(samplers, pruners))
    options = {"workers": workers, "trials": trials, "confidence": confidence, "bins": bins}
    traces = Parallel(n_jobs=processes, return_as="generator")(
        delayed(replay)(table, sampler, pruner, seed=seed, **options)
        for sampler, pruner in asked
        for seed in range(seeds)
    )
    pairs = []
    for sampler, pruner in asked:
        pairs.append(Pair(sampler, pruner, tuple(islice(traces, seeds))))
        listener(f"{sampler}, pruner {pruner}")
    return pairs


def comparison_text(table: Table, pairs: Sequence[Pair]) -> str:
    """The comparison as text: a table above chance, and one above the worst network."""
    lines = [
        f"{table.name}: {len(table.networks)} networks of {table.epochs} epochs, "
        f"{len(table.front)} on the front; {_seeds(len(pairs[0].traces))}"
    ]
    if table.left_out:
        lines.append(
            f"{plural(table.left_out, 'network')} of the run "
            f"{'is' if table.left_out == 1 else 'are'} left out, stopped early or failed; those "
            "that are left are better than random ones, and so is a search among them: record a "
            "run with --sampler random --no-prune"
        )
    if table.standard_error is not None:
        lines.append(
            f"top-1 of the networks: standard deviation {table.spread:.2f} points; the error of "
            f"{table.num_images:,} images alone: {table.standard_error:.2f}"
        )
    if table.scatter is not None:
        trainings = sum(len(network.scores) for network in table.complete)
        lines.append(
            f"{trainings} trainings; of one network they scatter by {table.scatter:.2f} points "
            "between seeds, and it counts with their mean"
        )
    for of, floor in MEASURES.items():
        ats = (f"at {share:.0%}" for share in SHARES)
        head = ("", "trials to 95 %", "epochs to 95 %", "epochs to 99 %", *ats)
        rows = [head, *(_row(table, pair, of) for pair in pairs)]
        lines += ["", f"hypervolume {floor}, % of the whole table's", *columns(rows)]
    stops = [_stops(pair) for pair in pairs if pair.stopped]
    if stops:
        heads = ("", "stopped", "of them on the front")
        lines += ["", "stopped early, of all trainings started", *columns([heads, *stops])]
    return "\n".join(lines)


def comparison_json(table: Table, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The comparison for JSON. Shares of epochs and hypervolume are from 0 to 1."""
    return {
        "table": table.name,
        "networks": len(table.networks),
        "epochs": table.epochs,
        "front": len(table.front),
        "top1_spread_points": table.spread,
        "top1_standard_error_points": table.standard_error,
        "top1_scatter_points": table.scatter,
        "made": dict(table.made),
        "pairs": [_pair_json(table, pair) for pair in pairs],
    }


def _pair_json(table: Table, pair: Pair) -> dict[str, Any]:
    whole = {"trials": float(len(table.networks)), "epochs": 1.0}
    figures: dict[str, Any] = {}
    for of in MEASURES:
        figures[of] = {
            f"{by}_to_{round(100 * share)}": vars(pair.reach(share, of, by, whole[by]))
            for share in (0.95, 0.99)
            for by in whole
        }
        figures[of]["at"] = {str(share): vars(pair.at(share, of)) for share in SHARES}
    return {
        "sampler": pair.sampler,
        "pruner": pair.pruner,
        "seeds": len(pair.traces),
        **figures,
        "stopped": pair.stopped,
        "stopped_on_front": pair.lost,
        "epochs": float(np.mean([trace.epochs for trace in pair.traces])),
        "seconds": float(np.mean([trace.seconds for trace in pair.traces])),
    }


def _row(table: Table, pair: Pair, of: str) -> tuple[str, ...]:
    trials = pair.reach(0.95, of, "trials", len(table.networks))
    to = [pair.reach(share, of, "epochs", 1.0) for share in (0.95, 0.99)]
    cells = [f"{trials.mean:.1f}{_interval(trials)}{_never(trials)}"]
    cells += [f"{_percent(found)} %{_interval(found, 100)}{_never(found)}" for found in to]
    cells += [_percent(pair.at(share, of)) for share in SHARES]
    return (f"{pair.sampler} / {pair.pruner}", *cells)


def _percent(mean: SeedMean) -> str:
    return f"{100 * mean.mean:.1f}"


def _seeds(number: int) -> str:
    return "1 seed, no intervals" if number == 1 else f"{number} seeds, means (95 % intervals)"


def _interval(mean: SeedMean, times: int = 1) -> str:
    if mean.low is None or mean.high is None:
        return ""
    return f" ({times * mean.low:.1f}-{times * mean.high:.1f})"


def _never(mean: SeedMean) -> str:
    return f" {mean.never}x never" if mean.never else ""


def _stops(pair: Pair) -> tuple[str, ...]:
    started = sum(trace.started for trace in pair.traces)
    share = f"{100 * pair.stopped / started:.0f} %"
    on_front = f"{pair.lost} of {pair.stopped} ({100 * pair.lost / pair.stopped:.2f} %)"
    return (f"{pair.sampler} / {pair.pruner}", share, on_front)


def _seed_mean(values: Sequence[float], never: int = 0) -> SeedMean:
    table = np.asarray(values, dtype=np.float64)
    if len(table) == 1:
        return SeedMean(float(table[0]), None, None, never)
    drawn = np.random.default_rng(0).integers(len(table), size=(_RESAMPLES, len(table)))
    low, high = np.quantile(table[drawn].mean(axis=1), [0.025, 0.975])
    return SeedMean(float(table.mean()), float(low), float(high), never)
