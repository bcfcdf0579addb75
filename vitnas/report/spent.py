"""Hypervolume over what was spent: epochs trained, seconds and GPU-seconds of trainings."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from statistics import fmean
from typing import NamedTuple

import numpy as np

from vitnas.config.costs import log_costs
from vitnas.engine.samplers import SAMPLERS
from vitnas.records import Outcome
from vitnas.report.chance import Chance
from vitnas.report.progress import Growing, corner_of, is_random_search, usable
from vitnas.report.text import duration_text, percent_text, plural
from vitnas.report.whole_cost import gpu_seconds_of, gpu_share, hours_text
from vitnas.run import Run

_ENOUGH, _MOST_STEPS = 10, 60


class Spent(NamedTuple):
    """The state of a run when a training had ended.

    Attributes:
        number: of the trial.
        epochs: trained so far, by stopped and lost trainings, too.
        seconds: that trainings took so far, added up over workers; None where one is not known.
        gpu_seconds: the same times the share of a GPU; 0 on the CPU.
        volume: of the front so far, in points of top-1 times ln of each cost.
    """

    number: int
    epochs: int
    seconds: float | None
    gpu_seconds: float | None
    volume: float


def spent_curve(run: Run, corner: Sequence[float] | None = None) -> list[Spent]:
    """What the trials of a run reached for what they took, in the order in which they ended.

    Replicates and baselines are left out: no network comes from them. What was taken over from
    another run costs nothing here.

    Args:
        run: the run.
        corner: the worst corner, to minimise; that of the run where it is not given.
    """
    worst = corner_of([run]) if corner is None else tuple(corner)
    complete = {trial.number: trial for trial in run.complete}
    share, grown, epochs, curve = gpu_share(run), Growing(worst), 0, []
    seconds: float | None = 0.0
    gpu_seconds: float | None = 0.0
    ended = [trial for trial in run.trials if trial.outcome.is_trial]
    for trial in sorted(ended, key=lambda one: (one.ended or 0.0, one.number)):
        if not trial.taken:
            epochs += trial.epochs
            seconds = _sum(seconds, trial.seconds)
            gpu_seconds = _sum(gpu_seconds, gpu_seconds_of(trial, share))
        costs = trial.costs(run.costs)
        if trial.outcome is Outcome.COMPLETE and usable(trial, costs):
            estimate = complete[trial.number].estimate or 0.0
            grown.add(np.array([-estimate, *log_costs(run.costs, costs)]))
        curve.append(Spent(trial.number, epochs, seconds, gpu_seconds, grown.volume))
    return curve


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def per_network(run: Run) -> Spent | None:
    """What a network that was trained to the end took here, as a mean; None without any.

    Its number and volume are 0. Replicates are left out, and so is what was taken over.
    """
    ended = [t for t in run.trials if t.outcome is Outcome.COMPLETE and not t.taken]
    if not ended:
        return None
    share = gpu_share(run)
    times = [trial.seconds for trial in ended]
    on_gpu = [gpu_seconds_of(trial, share) for trial in ended]
    return Spent(0, run.epochs, _mean(times), _mean(on_gpu), 0.0)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def random_start(run: Run) -> int | None:
    """How many trials its sampler drew at random before it learned; None where it is not known.

    All of a random search; of `ehvi` next to none. Networks that were given do not count. A sampler
    learns from them, too, so where one came before, it is not known how many followed at random.
    """
    samplers = {session.sampler for session in run.environment.sessions}
    if len(samplers) != 1:
        return None
    (sampler,) = samplers
    at_random = SAMPLERS[sampler].at_random if sampler in SAMPLERS else None
    if at_random is None:
        return None
    drawn = [trial.number for trial in run.trials if trial.is_ended_here and not trial.origin]
    number = int(min(at_random, len(drawn)))
    if at_random < inf and number:
        last = drawn[number - 1]
        if any(trial.origin and trial.number < last for trial in run.trials):
            return None
    return number


def spent_text(run: Run, chance: Chance | None) -> str:
    """What the last front took, when it was nearly there, and what chance reached or would have
    reached; empty where nothing can be said."""
    curve = spent_curve(run)
    if len(curve) < 2 or curve[-1].volume <= 0:
        return ""
    last = curve[-1]
    nearly = next(one for one in curve if one.volume >= 0.95 * last.volume)
    text = f"The trials took {_amount(last)}; 95 % was reached after {_amount(nearly)}."
    return f"{text} {_chance_text(run, curve, chance)}"


def step_rows(run: Run) -> tuple[list[dict[str, str]], str]:
    """The hypervolume whenever the front had grown, as text, and what is left out of many steps."""
    curve = spent_curve(run)
    if not curve:
        return [], ""
    last = curve[-1]
    before = [0.0, *(one.volume for one in curve)]
    steps = [one for one, volume in zip(curve, before, strict=False) if one.volume > volume]
    shown = steps[::-1][:: -(-len(steps) // _MOST_STEPS)][::-1] if steps else []
    rows = [
        {
            "number": str(one.number),
            "epochs": f"{one.epochs:,}",
            "seconds": duration_text(one.seconds),
            "gpu": hours_text(one.gpu_seconds) if last.gpu_seconds else "",
            "share": percent_text(100 * one.volume / last.volume),
        }
        for one in shown
    ]
    return rows, f"; {len(steps) - len(shown)} steps between these are left out" * (
        len(shown) < len(steps)
    )


def _amount(spent: Spent) -> str:
    epochs = plural(spent.epochs, "epoch")
    return epochs if spent.seconds is None else f"{epochs} ({duration_text(spent.seconds)})"


def random_share(run: Run, curve: Sequence[Spent]) -> tuple[int, float] | None:
    """How many trials were drawn at random, and the hypervolume after them as a share of the last
    one; None where they are too few, unknown, or all."""
    number = random_start(run)
    drawn = [t.number for t in run.trials if t.is_ended_here and not t.origin]
    if number is None or not _ENOUGH <= number < len(drawn) or curve[-1].volume <= 0:
        return None
    first = set(drawn[:number])
    behind = [place for place, one in enumerate(curve) if one.number in first]
    return number, curve[max(behind)].volume / curve[-1].volume


def _chance_text(run: Run, curve: Sequence[Spent], chance: Chance | None) -> str:
    if is_random_search(run):
        return "This run is a random search."
    texts = []
    if share := random_share(run, curve):
        number, reached = share
        texts.append(
            f"The first {number} trials were drawn at random and reached {100 * reached:.0f} %; "
            f"the others, which its model chose, added {100 - 100 * reached:.0f} %."
        )
    if chance is not None:
        number, reached = chance.networks[-1], chance.median[-1]
        texts.append(
            f"A random search of {number} networks, each trained for all {run.epochs} epochs "
            f"({number * run.epochs:,} in all), would have reached {100 * reached:.0f} % "
            f"({100 * chance.low[-1]:.0f} to {100 * chance.high[-1]:.0f} %), by the model that "
            "gives expected top-1."
        )
    else:
        texts.append(
            "What a random search as long as this run reaches is not known from it: `--sampler "
            "random` in another folder shows it, and `vitnas report A B` compares."
        )
    return " ".join(texts)
