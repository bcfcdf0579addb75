"""A network that is chosen from a run: its neighbours, its rivals, and how sure the choice is.

How sure: expected top-1 of the networks in question are taken as independent and Student-t (see
`vitnas.noise`). `vitnas.report.outlook` says what more replicates would tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vitnas.exported.choose import Target, fitting
from vitnas.longer import LongResult
from vitnas.noise import Expected, Noise, chances_of
from vitnas.records import TrialRecord
from vitnas.report.outlook import Outlook, is_sure, outlook_of
from vitnas.report.standing import estimate_error, estimated
from vitnas.run import Run

_RIVAL = 0.05
"""From this chance on a network is worth naming."""
_MOST_RIVALS = 5


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
        outlook: what more replicates would tell; None where the choice is sure, and where errors
            are not known.
        neighbours: the two members of the front on each side of it, by FLOPs.
    """

    run: Run
    target: Target
    trial: TrialRecord
    number_fitting: int
    chance: float | None
    rivals: tuple[Rival, ...]
    outlook: Outlook | None
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
    chance: float | None = None
    contenders, rivals = [chosen], [chosen.number]
    named: tuple[Rival, ...] = ()
    if noise is None:
        pass
    elif target.min_top1 is not None:
        chance = noise.ahead(estimated(run, chosen), Expected(target.min_top1, 0.0))
    else:
        chances = _chances(noise, found)
        chance = chances[chosen.number]
        likely = [number for number in chances if chances[number] >= _RIVAL][:_MOST_RIVALS]
        rivals = list(dict.fromkeys([*likely, chosen.number]))
        named = tuple(Rival(number, chances[number]) for number in rivals)
        contenders = [trial for trial in found if chances[trial.number] > 0]
    outlook = None
    if noise is not None and chance is not None and not is_sure(chance):
        outlook = outlook_of(run, noise, contenders, rivals, target.min_top1)
    return Picked(
        run=run,
        target=target,
        trial=chosen,
        number_fitting=len(found),
        chance=chance,
        rivals=named,
        outlook=outlook,
        neighbours=_neighbours(run, chosen),
    )


def _chances(noise: Noise, found: Sequence[TrialRecord]) -> dict[int, float]:
    """Of each network, by number, the probability to be the best, the likeliest first."""
    expected = [t.expected or noise.expected([t.trainings])[0] for t in found]
    values = chances_of(expected, [[0.0]] * len(found), noise.degrees).tolist()
    pairs = zip((trial.number for trial in found), values, strict=True)
    return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))


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
