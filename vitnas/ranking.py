"""How the networks of a run rank: what to expect of each, and its chance to be on the front."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from vitnas.errors import ConfigError
from vitnas.records import Outcome, TrialRecord, completed, front_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from vitnas.noise import Noise

_MOST_NOW = 100
_DRAWS = 1000


class Draws(NamedTuple):
    """What the top-1 of networks may be in truth.

    Attributes:
        trials: the k networks.
        top1: (s, k) in percent, a row for each of s draws.
    """

    trials: tuple[TrialRecord, ...]
    top1: npt.NDArray[np.float64]


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
    most: int | None = None,
) -> tuple[TrialRecord, ...]:
    """Complete trials, each with its expected top-1 (see `vitnas.surrogate.expected`).

    Args:
        complete: trials with the top-1 of their replicates.
        noise: of the run. Without it nothing is expected; nor if a network cannot be read here
            because its mixer is another package's.
        costs: those among the objectives.
        most: of more networks, only so many have one: those nearest to the front. It is too high,
            because they are the lucky ones; None: all have one.
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


def near_front(
    complete: Iterable[TrialRecord], chances: Mapping[int, float], costs: Sequence[str]
) -> dict[int, float]:
    """Chances of what is on the front or has at least `PLAUSIBLE`, by number.

    These are the networks that a run trains again.

    Args:
        complete: trials with expected top-1.
        chances: of each, by number (see `chances_by_number`).
        costs: those among the objectives.
    """
    from vitnas.noise import PLAUSIBLE

    members = {trial.number for trial in front_of(complete, costs)}
    return {n: c for n, c in chances.items() if c >= PLAUSIBLE or n in members}


def draws_of(
    complete: Iterable[TrialRecord], noise: Noise | None, chances: Mapping[int, float]
) -> Draws | None:
    """1,000 draws of the true top-1 of the networks that may be on the front.

    Each is Student-t around its expected top-1, with its error and the noise's degrees of freedom,
    as in `vitnas.noise`. Networks that resemble each other err alike (see
    `vitnas.surrogate.joint`), which the chances leave out. Networks with a chance below 0.001
    are left out.

    Args:
        complete: trials with expected top-1.
        noise: of the run.
        chances: of each trial, by number (see `chances_by_number`).

    Returns:
        None where `noise` is, and where nothing was trained to the end.

    Randomness: its own, with a fixed seed.
    """
    import numpy as np

    known = _scored(complete)
    near = [trial for trial in known if chances.get(trial.number, 0.0) > 0]
    if noise is None or not near:
        return None
    means, errors = np.array(
        [trial.expected or noise.expected([trial.trainings])[0] for trial in near]
    ).T
    random = np.random.default_rng(0)
    shared = random.standard_normal((_DRAWS, len(near))) @ _root(known, noise, near).T
    scales = np.sqrt(noise.degrees / random.chisquare(noise.degrees, (_DRAWS, 1)))
    return Draws(tuple(near), np.clip(means + errors * scales * shared, 0.0, 100.0))


def _root(
    known: Sequence[TrialRecord], noise: Noise, near: Sequence[TrialRecord]
) -> npt.NDArray[np.float64]:
    """R with R R^T = the correlations of `near`."""
    import numpy as np

    from vitnas.surrogate.features import facts_of
    from vitnas.surrogate.joint import correlations

    expected = [trial for trial in known if trial.expected is not None]
    found = np.eye(len(near))
    row_of = {trial.number: row for row, trial in enumerate(expected)}
    places = [place for place, trial in enumerate(near) if trial.number in row_of]
    if places:
        facts = [facts_of(trial.network, trial) for trial in expected]
        rows = [row_of[near[place].number] for place in places]
        found[np.ix_(places, places)] = correlations(
            facts, [trial.trainings for trial in expected], noise, rows
        )
    values, vectors = np.linalg.eigh(found)
    root: npt.NDArray[np.float64] = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _scored(trials: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The complete ones with finite top-1."""
    complete = (trial for trial in trials if trial.outcome is Outcome.COMPLETE)
    return [t for t in complete if t.trainings and all(map(isfinite, t.trainings))]


def _with_expected(
    complete: Sequence[TrialRecord], noise: Noise | None, costs: Sequence[str], most: int | None
) -> tuple[TrialRecord, ...]:
    from vitnas.pareto import front_ranks
    from vitnas.surrogate.expected import expected_top1
    from vitnas.surrogate.features import facts_of

    known = _scored(complete)
    if noise is None or not known:
        return tuple(complete)
    if most is not None and len(known) > most:
        ranks = front_ranks([trial.point(costs) for trial in known]).tolist()
        ranked = sorted(zip(ranks, known, strict=True), key=lambda pair: (pair[0], pair[1].number))
        known = [trial for _, trial in ranked[:most]]
    facts = [facts_of(trial.network, trial) for trial in known]
    found = expected_top1(facts, [trial.trainings for trial in known], noise)
    by_number = dict(zip((trial.number for trial in known), found, strict=True))
    return tuple(replace(trial, expected=by_number.get(trial.number)) for trial in complete)
