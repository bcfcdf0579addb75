"""What more replicates would tell of a choice, and which of a search's options makes them.

Drawn before any of them is made: true values from what is expected now, then the means of new
trainings around them (preposterior analysis: Raiffa and Schlaifer, Applied Statistical Decision
Theory, 1961, chapter 5). True values are independent and Student-t, as in `vitnas.noise`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vitnas.noise import Noise
from vitnas.ranking import near_front
from vitnas.records import TrialRecord
from vitnas.report.standing import estimated
from vitnas.run import Run

ENOUGH = 0.9
"""From this chance on a choice is sure."""
_TIMES = (0, 1, 2, 4, 8)
_DRAWS = 4000


def is_sure(chance: float) -> bool:
    """Whether a chance is enough, as it is printed."""
    return round(chance, 2) >= ENOUGH


@dataclass(frozen=True)
class Prospect:
    """What a number of replicates would bring.

    Attributes:
        replicates: of each network that is trained again, those included that there are.
        trainings: that are still to be made, in all.
        chance: probability that the best network is chosen then; with a least top-1, that it is
            told rightly whether the network reaches it.
        loss: points of top-1 by which the choice is expected to be below the best one; with a least
            top-1, by which the network is expected to be on the other side of it.
        seconds: of all these trainings, one after the other; None if it is not known.
    """

    replicates: int
    trainings: int
    chance: float
    loss: float
    seconds: float | None


@dataclass(frozen=True)
class Outlook:
    """What more replicates would tell.

    Attributes:
        of_all: whether `--replicate-all` makes them; `--replicates` alone trains again only what is
            or may be on the front.
        left: rivals that `--replicates` alone does not train again, by number.
        steps: as it is now, then for more and more replicates, up to what is enough.
    """

    of_all: bool
    left: tuple[int, ...]
    steps: tuple[Prospect, ...]

    @property
    def is_enough(self) -> bool:
        return is_sure(self.steps[-1].chance)


def outlook_of(
    run: Run,
    noise: Noise,
    contenders: Sequence[TrialRecord],
    rivals: Sequence[int],
    least: float | None = None,
) -> Outlook:
    """What more replicates tell: by `--replicates` alone, or of all where only that is enough.

    Args:
        run, noise: the run and its noise.
        contenders: the networks one of which is the best; with `least`, the one in question.
        rivals: numbers of the contenders that are worth naming.
        least: top-1 in percent that the network has to reach.
    """
    near = near_front(run.complete, run.chances, run.costs)
    left = tuple(number for number in rivals if number not in near)
    alone = Outlook(False, left, _steps(run, noise, contenders, near, least))
    if alone.is_enough or all(trial.number in near for trial in contenders):
        return alone
    every = [trial.number for trial in run.complete]
    of_all = Outlook(True, left, _steps(run, noise, contenders, every, least))
    return of_all if of_all.is_enough or len(left) == len(rivals) else alone


def _steps(
    run: Run,
    noise: Noise,
    contenders: Sequence[TrialRecord],
    trained: Iterable[int],
    least: float | None,
) -> tuple[Prospect, ...]:
    """For up to 8 more replicates of the networks that are trained again."""
    made = Counter(trial.replicate_of for trial in run.replicates)
    wanted = set(trained)
    again = [trial for trial in run.complete if trial.number in wanted]
    most = max((made[trial.number] for trial in again), default=0)
    known = [estimated(run, trial) for trial in contenders]
    alone = [noise.error(one.top1) for one in known]
    found: list[Prospect] = []
    for times in _TIMES:
        more = {t.number: most + times - made[t.number] if times else 0 for t in again}
        numbers = np.array([more.get(trial.number, 0) for trial in contenders])
        with np.errstate(divide="ignore"):
            new = np.array(alone) / np.sqrt(numbers)
        means, errors = np.array(known).T
        if least is not None:  # it is known, and nothing more is learnt of it
            means, errors, new = np.append(means, least), np.append(errors, 0), np.append(new, 0)
        chance, loss = foreseen(means, errors, new, noise.degrees)
        seconds = [None if t.seconds is None else more[t.number] * t.seconds for t in again]
        total = sum(one or 0.0 for one in seconds)
        needed = None if None in seconds else total
        found.append(Prospect(most + times, sum(more.values()), chance, loss, needed))
        if times and is_sure(chance):
            break
    return tuple(found)


def foreseen(
    means: npt.ArrayLike, errors: npt.ArrayLike, new_errors: npt.ArrayLike, degrees: float
) -> tuple[float, float]:
    """What to expect of the network that is chosen after a further measurement of each.

    Args:
        means, errors: of each network, its expected top-1 in percent and its standard error.
        new_errors: of each, the standard error in points of its measurement; infinite for none.
        degrees: of freedom behind all errors, which are too small or too large together.

    Returns:
        The probability that it is the best one, and by how many points it is below the best on
        average.

    Randomness: 4,000 draws with a fixed seed.
    """
    mean, error, new = (np.asarray(values, float) for values in (means, errors, new_errors))
    draw = np.random.default_rng(0)
    scale = np.sqrt(degrees / draw.chisquare(degrees, (_DRAWS, 1)))
    truth = mean + scale * error * draw.standard_normal((_DRAWS, len(mean)))
    trust = error**2 / np.maximum(error**2 + new**2, np.finfo(float).tiny)
    noise = scale * np.nan_to_num(new, posinf=0.0) * draw.standard_normal(truth.shape)
    chosen = (mean + trust * (truth + noise - mean)).argmax(axis=1)
    reached = np.take_along_axis(truth, chosen[:, None], axis=1)[:, 0]
    is_best = chosen == truth.argmax(axis=1)
    return float(is_best.mean()), float((truth.max(axis=1) - reached).mean())
