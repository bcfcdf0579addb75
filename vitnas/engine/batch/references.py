"""The baselines that a run's folder tells of."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vitnas.config.baseline import Baseline, PricedBaseline
from vitnas.engine.batch.book import Entry, read_entries
from vitnas.engine.batch.rates import best_rate, said_of
from vitnas.errors import RunError
from vitnas.records import BaselineRecord, repeated

FILE_NAME = "baselines.jsonl"


def read_baselines(folder: Path, among: Container[str] | None = None) -> tuple[BaselineRecord, ...]:
    """Every baseline of the run, by family in the order of training and by FLOPs.

    Of several learning rates the best one counts (see `vitnas.engine.batch.rates`). At each rate a
    baseline's further trainings stand after its first one in the file.

    Args:
        folder: of the run.
        among: keys of the only trainings that are seen; all of them by default.

    Raises:
        RunError: the file is damaged.
    """
    entries = {entry.key: entry for entry in read_entries(folder / FILE_NAME)}
    trainings: dict[tuple[str, int], list[BaselineRecord]] = {}
    for entry in entries.values():
        if among is not None and entry.key not in among:
            continue
        record = _record(folder, entry)
        trainings.setdefault((record.family, record.width), []).append(record)
    families = list(dict.fromkeys(family for family, _ in trainings))
    found = map(_together, trainings.values())
    return tuple(sorted(found, key=lambda one: (families.index(one.family), one.flops)))


def untrained(folder: Path, members: Sequence[PricedBaseline]) -> list[PricedBaseline]:
    """Those of `members` that no training of the run is of.

    Raises:
        RunError: the file is damaged.
    """
    trained = {one.network for one in read_baselines(folder)}
    return [one for one in members if one.baseline not in trained]


def _together(trainings: Sequence[BaselineRecord]) -> BaselineRecord:
    """One record of a baseline's trainings."""
    by_rate: dict[float, list[BaselineRecord]] = {}
    for one in trainings:
        by_rate.setdefault(one.lr, []).append(one)
    rates = {lr: of_rate[0].top1 for lr, of_rate in sorted(by_rate.items())}
    said = {lr: said_of(of_rate[0].outcome, rates[lr]) for lr, of_rate in by_rate.items()}
    first, *again = by_rate[best_rate(said)]
    ended = max((one.ended for one in trainings if one.ended is not None), default=None)
    several = tuple(rates.items()) if len(rates) > 1 else ()
    return replace(repeated(first, again), ended=ended, rates=several)


def _record(folder: Path, entry: Entry) -> BaselineRecord:
    try:
        baseline = Baseline.model_validate(entry.request.get("baseline"))
    except ValidationError:
        rule = f"{folder / FILE_NAME}: the training {entry.key} is not a baseline's"
        raise RunError(f"{rule}; remove its line, and it is done again") from None
    seed: Any = entry.request.get("seed")
    proxy: Any = entry.request.get("proxy")
    lr: Any = proxy.get("lr") if isinstance(proxy, Mapping) else None
    answer = entry.answer
    return BaselineRecord(
        network=baseline,
        lr=lr if isinstance(lr, float) else 0.0,
        outcome=answer.outcome,
        flops=answer.flops or 0,
        num_params=answer.num_params or 0,
        curve=answer.curve,
        test_top1=answer.test_top1,
        seconds=answer.seconds,
        seed=seed if isinstance(seed, int) else 0,
        error=answer.error,
        ended=entry.ended,
    )
