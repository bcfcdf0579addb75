"""The baselines that a run's folder tells of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vitnas.config.baseline import Baseline
from vitnas.engine.batch.book import Entry, read_entries
from vitnas.errors import RunError
from vitnas.records import BaselineRecord, repeated

FILE_NAME = "baselines.jsonl"


def read_baselines(folder: Path) -> tuple[BaselineRecord, ...]:
    """Every baseline of the run, by family in the order of training and by FLOPs.

    A baseline's further trainings stand after its first one in the file.

    Raises:
        RunError: the file is damaged.
    """
    entries = {entry.key: entry for entry in read_entries(folder / FILE_NAME)}
    trainings: dict[tuple[str, int], list[BaselineRecord]] = {}
    for entry in entries.values():
        record = _record(folder, entry)
        trainings.setdefault((record.family, record.width), []).append(record)
    families = list(dict.fromkeys(family for family, _ in trainings))
    found = map(_together, trainings.values())
    return tuple(sorted(found, key=lambda one: (families.index(one.family), one.flops)))


def _together(trainings: list[BaselineRecord]) -> BaselineRecord:
    """One record of a baseline's trainings."""
    first, *again = trainings
    ended = max((one.ended for one in trainings if one.ended is not None), default=None)
    return replace(repeated(first, again), ended=ended)


def _record(folder: Path, entry: Entry) -> BaselineRecord:
    try:
        baseline = Baseline.model_validate(entry.request.get("baseline"))
    except ValidationError:
        rule = f"{folder / FILE_NAME}: the training {entry.key} is not a baseline's"
        raise RunError(f"{rule}; remove its line, and it is done again") from None
    seed: Any = entry.request.get("seed")
    answer = entry.answer
    return BaselineRecord(
        network=baseline,
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
