"""A network that is chosen from a run: its neighbours, its rivals, and how sure the choice is.

How sure: expected top-1 of the networks in question are taken as independent and Student-t (see
`vitnas.noise`). What further trainings would tell is drawn: true values from what is expected now,
then the means of new trainings around them (preposterior analysis: Raiffa and Schlaifer, Applied
Statistical Decision Theory, 1961, chapter 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitnas.exported.choose import Target, fitting
from vitnas.longer import LongResult
from vitnas.noise import Expected, Noise, chances_of
from vitnas.records import TrialRecord
from vitnas.report.standing import estimate_error, estimated
from vitnas.run import Run

_RIVAL = 0.05
"""From this chance on a network is worth naming, and worth training again."""
_MOST_RIVALS = 5
_TIMES = (0, 1, 2, 4, 8)
ENOUGH = 0.9
"""From this chance on a choice is sure."""
_DRAWS = 4000


@dataclass(frozen=True)
class Rival:
    """A network that may be the best one.

    Attributes:
        number: of its trial.
        chance: probability that its true top-1 is the highest among those that meet the target.
    """

    number: int
    chance: float


@dataclass(frozen=True)
class Further:
    """What more trainings of the rivals would bring.

    Attributes:
        times: further trainings of each.
        chance: probability that the best of them is chosen then.
        loss: points of top-1 by which the one chosen is expected to be below the best.
        seconds: of all these trainings, one after the other; None if it is not known.
    """

    times: int
    chance: float
    loss: float
    seconds: float | None


@dataclass(frozen=True)
class Neighbour:
    """A member of the front beside the chosen network.

    Attributes:
        trial: the member.
        points: its expected top-1 minus that of the chosen one.
        flops: its FLOPs as a multiple.
        better: probability that its true top-1 is higher; None if errors are not known.
    """

    trial: TrialRecord
    points: float
    flops: float
    better: float | None


@dataclass(frozen=True)
class Picked:
    """What `vitnas pick` says.

    Attributes:
        trial: the network.
        number_fitting: how many complete networks meet the target.
        chance: probability that it is the best of them; with a least top-1, that it reaches it.
            None if errors are not known.
        rivals: those that may be the best, the likeliest first, with itself; empty with a least
            top-1.
        further: for no, one, and more further trainings of each rival, up to what is enough; empty
            without rivals.
        neighbours: the two members of the front on each side of it, by FLOPs.
    """

    run: Run
    target: Target
    trial: TrialRecord
    number_fitting: int
    chance: float | None
    rivals: tuple[Rival, ...]
    further: tuple[Further, ...]
    neighbours: tuple[Neighbour, ...]

    @property
    def long(self) -> tuple[tuple[LongResult, ...], ...]:
        """What long trainings of it, of its neighbours and rivals and of baselines brought, by
        setting."""
        beside = (one.trial.number for one in self.neighbours)
        shown = {None, self.trial.number, *beside, *(one.number for one in self.rivals)}
        groups = (tuple(one for one in g if one.trial in shown) for g in self.run.long.settings)
        return tuple(filter(None, groups))


def choose(run: Run, target: Target) -> Picked:
    """The network of a run that meets a target best; see `vitnas.exported.choose.fitting`.

    Randomness: its own, with a fixed seed.

    Raises:
        VitnasError: none meets it.
    """
    found = fitting(run, target)
    chosen = found[0]
    noise = run.noise if estimate_error(run, chosen) is not None else None
    rivals: tuple[Rival, ...] = ()
    if noise is None:
        chance = None
    elif target.min_top1 is not None:
        chance = noise.ahead(estimated(run, chosen), Expected(target.min_top1, 0.0))
    else:
        chances = _chances(noise, found)
        chance = chances[chosen.number]
        likely = [number for number in chances if chances[number] >= _RIVAL][:_MOST_RIVALS]
        rivals = tuple(Rival(n, chances[n]) for n in dict.fromkeys([*likely, chosen.number]))
    return Picked(
        run=run,
        target=target,
        trial=chosen,
        number_fitting=len(found),
        chance=chance,
        rivals=rivals,
        further=_further(run, noise, rivals) if noise and len(rivals) > 1 else (),
        neighbours=_neighbours(run, chosen),
    )


def _chances(noise: Noise, found: Sequence[TrialRecord]) -> dict[int, float]:
    """Of each network, by number, the probability to be the best, the likeliest first."""
    expected = [t.expected or noise.expected([t.trainings])[0] for t in found]
    values = chances_of(expected, [[0.0]] * len(found), noise.degrees).tolist()
    pairs = zip((trial.number for trial in found), values, strict=True)
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


def _further(run: Run, noise: Noise, rivals: Sequence[Rival]) -> tuple[Further, ...]:
    """For up to 8 more trainings of each, until the best is chosen with 0.9."""
    trials = {trial.number: trial for trial in run.complete}
    members = [trials[rival.number] for rival in rivals]
    means, errors = np.array([estimated(run, trial) for trial in members]).T
    alone = np.array([noise.error(trial.estimate or 0.0) for trial in members])
    seconds = [trial.seconds for trial in members]
    known = None if None in seconds else sum(one or 0.0 for one in seconds)
    found: list[Further] = []
    for times in _TIMES:
        new_errors = alone / times**0.5 if times else np.full(len(alone), np.inf)
        seconds_needed = None if known is None else times * known
        found.append(Further(times, *outlook(means, errors, new_errors), seconds_needed))
        if found[-1].chance >= ENOUGH:
            break
    return tuple(found)


def outlook(
    means: npt.ArrayLike, errors: npt.ArrayLike, new_errors: npt.ArrayLike
) -> tuple[float, float]:
    """What to expect of the network that is chosen after a further measurement of each.

    Args:
        means, errors: of each network, its expected top-1 in percent and its standard error.
        new_errors: of each, the standard error in points of its measurement; infinite for none.

    Returns:
        The probability that it is the best one, and by how many points it is below the best on
        average.

    Randomness: 4,000 draws with a fixed seed.
    """
    mean, error, new = (np.asarray(values, float) for values in (means, errors, new_errors))
    draw = np.random.default_rng(0)
    truth = mean + error * draw.standard_normal((_DRAWS, len(mean)))
    trust = error**2 / (error**2 + new**2)
    noise = np.nan_to_num(new, posinf=0.0) * draw.standard_normal(truth.shape)
    chosen = (mean + trust * (truth + noise - mean)).argmax(axis=1)
    reached = np.take_along_axis(truth, chosen[:, None], axis=1)[:, 0]
    is_best = chosen == truth.argmax(axis=1)
    return float(is_best.mean()), float((truth.max(axis=1) - reached).mean())


def _neighbours(run: Run, chosen: TrialRecord) -> tuple[Neighbour, ...]:
    by_flops = sorted(run.front, key=lambda trial: (trial.flops, trial.number))
    members = [trial for trial in by_flops if trial.number != chosen.number]
    cheaper = [trial for trial in members if trial.flops <= chosen.flops][-2:]
    dearer = [trial for trial in members if trial.flops > chosen.flops][:2]
    return tuple(_beside(run, chosen, trial) for trial in (*cheaper, *dearer))


def _beside(run: Run, chosen: TrialRecord, trial: TrialRecord) -> Neighbour:
    ours, theirs = estimated(run, chosen), estimated(run, trial)
    better = None if run.noise is None else run.noise.ahead(theirs, ours)
    return Neighbour(trial, theirs.top1 - ours.top1, trial.flops / max(chosen.flops, 1), better)
