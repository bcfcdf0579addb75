"""How the networks of a run rank: what to expect of each, and its chance to be on the front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from vitnas.errors import ConfigError
from vitnas.records import Outcome, TrialRecord, completed, front_of

if TYPE_CHECKING:
    from vitnas.noise import Noise

_MOST, _MOST_NOW = 500, 100  # the time grows with the third power


def noise_of(trials: Iterable[TrialRecord], num_images: int | None) -> Noise | None:
    """How far trainings scatter; None where it is unknown how many images score.

    Args:
        trials: candidates with the top-1 of their replicates.
        num_images: of the scoring split.
    """
    from vitnas.noise import measure

    return measure([t.trainings for t in _scored(trials)], num_images) if num_images else None


def expecting(
    complete: Sequence[TrialRecord],
    noise: Noise | None,
    costs: Sequence[str],
    most: int = _MOST,
) -> tuple[TrialRecord, ...]:
    """Complete trials, each with its expected top-1 (see `vitnas.surrogate.expected`).

    Args:
        complete: trials with the top-1 of their replicates.
        noise: of the run. Without it nothing is expected; nor if a network cannot be read here
            because its mixer is another package's.
        costs: those among the objectives.
        most: of more networks, only so many have one: those nearest to the front.
    """
    with suppress(ConfigError):
        return _with_expected(complete, noise, costs, most)
    return tuple(complete)


def front_now(
    trials: Iterable[TrialRecord], num_images: int | None, costs: Sequence[str]
) -> tuple[TrialRecord, ...]:
    """The front of a run that goes on, from its trials and their replicates.

    It is that of `Run.front` with up to 100 complete networks. Of more, it expects something of the
    100 alone that are nearest to the front, so that an answer takes some hundredths of a second.
    """
    known = completed(trials)
    return front_of(expecting(known, noise_of(known, num_images), costs, _MOST_NOW), costs)


def chances_by_number(
    complete: Iterable[TrialRecord], noise: Noise | None, costs: Sequence[str]
) -> dict[int, float]:
    """Probability of each complete trial to be on the front, by number (see `vitnas.noise`).

    It follows from the expected top-1; where there is none, from the network's own trainings.
    Empty where `noise` is None.
    """
    from vitnas.noise import chances_of

    trials = _scored(complete)
    if noise is None or not trials:
        return {}
    alone = noise.expected([trial.trainings for trial in trials])
    known = [t.expected or own for t, own in zip(trials, alone, strict=True)]
    values = chances_of(known, [trial.minimized(costs) for trial in trials], noise.degrees)
    return dict(zip((trial.number for trial in trials), values.tolist(), strict=True))


def _scored(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The complete ones with finite top-1."""
    complete = (trial for trial in trials if trial.outcome is Outcome.COMPLETE)
    return [t for t in complete if t.trainings and all(map(isfinite, t.trainings))]


def _with_expected(
    complete: Sequence[TrialRecord], noise: Noise | None, costs: Sequence[str], most: int
) -> tuple[TrialRecord, ...]:
    from vitnas.pareto import front_ranks
    from vitnas.surrogate.expected import expected_top1
    from vitnas.surrogate.features import facts_of

    known = _scored(complete)
    if noise is None or not known:
        return tuple(complete)
    if len(known) > most:
        ranks = front_ranks([trial.point(costs) for trial in known]).tolist()
        ranked = sorted(zip(ranks, known, strict=True), key=lambda pair: (pair[0], pair[1].number))
        known = [trial for _, trial in ranked[:most]]
    facts = [facts_of(trial.network, trial) for trial in known]
    found = expected_top1(facts, [trial.trainings for trial in known], noise)
    by_number = dict(zip((trial.number for trial in known), found, strict=True))
    return tuple(replace(trial, expected=by_number.get(trial.number)) for trial in complete)
