"""The front as a band: 1,000 fronts drawn from what the trainings of a run leave open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, isfinite

import numpy as np

from vitnas.config.costs import COSTS, log_cost
from vitnas.records import TrialRecord
from vitnas.report.attainment import Attained, attained
from vitnas.report.text import cost_text, percent_text
from vitnas.run import Run

_ALIKE = 0.05  # points: less is not worth a sentence


@dataclass(frozen=True)
class Band:
    """What drawn fronts attain for at most each value of one cost; other costs are ignored.

    Attributes:
        cost: its name.
        at: its values where the steps are, towards the worse.
        found: the fronts there.
        number: of fronts.
    """

    cost: str
    at: tuple[float, ...]
    found: Attained
    number: int

    def there(self, value: float) -> tuple[float, float, float] | None:
        """Top-1 in percent that 95, 50 and 5 % of the fronts attain with a cost of `value`; None
        where no drawn network costs so little."""
        place = int(np.searchsorted(self.found.log_costs, log_cost(self.cost, value), "right")) - 1
        if place < 0:
            return None
        low, median, high = (
            line[place] for line in (self.found.low, self.found.median, self.found.high)
        )
        return float(low), float(median), float(high)


def band_of(run: Run, cost: str) -> Band | None:
    """The band against one cost.

    Returns:
        None if the run does not say on how many images top-1 was measured, or has no complete trial
        with a known cost.
    """
    draws = run.draws
    if draws is None:
        return None
    known = [place for place, trial in enumerate(draws.trials) if _cost(trial, cost) is not None]
    ends = [log_cost(cost, value) for value in (_cost(t, cost) for t in run.complete) if value]
    if not known:
        return None
    logs = np.array([log_cost(cost, _cost(draws.trials[place], cost) or 0.0) for place in known])
    found = attained(draws.top1[:, known], logs, max(ends))
    sign = COSTS[cost].sign
    at = tuple(exp(sign * value) for value in found.log_costs.tolist())
    return Band(cost, at, found, len(draws.top1))


def _cost(trial: TrialRecord, cost: str) -> float | None:
    """A cost above 0, or None."""
    (value,) = trial.costs([cost])
    return value if isfinite(value) and value > 0 else None


def band_text(run: Run) -> str:
    """What the band is, and one number for each cost; empty where there is no band."""
    bands = [band for cost in run.costs if (band := band_of(run, cost)) is not None]
    if not bands:
        return ""
    known = "the number of scoring images and from the scatter over seeds"
    if run.noise is None or not run.noise.is_measured:
        known = "the number of scoring images alone, because no network was trained twice"
    text = (
        f"The band holds 90 % of {bands[0].number:,} fronts, drawn from what the scores leave open "
        f"(noise from {known}); the dashed line is their median.{_above(run, bands[0])}"
    )
    numbers = (
        f"{percent_text(band.found.deviation)} points of top-1 from their middle, as a mean over "
        f"log {COSTS[band.cost].noun}"
        for band in bands
    )
    return f"{text} A drawn front is on average {', and '.join(numbers)} (Vorob'ev deviation)."


def _above(run: Run, band: Band) -> str:
    """Why the median is above the front, where it is: above the best member for this cost."""
    known = [(value, t.estimate or 0.0) for t in run.front if (value := _cost(t, band.cost))]
    gaps, best = [], 0.0
    for value, top1 in sorted(known, key=lambda one: log_cost(band.cost, one[0])):
        best, there = max(best, top1), band.there(value)
        gaps.append(there[1] - best if there else 0.0)
    if not gaps or float(np.mean(gaps)) < _ALIKE:
        return ""
    return (
        " The median is above the front: the best of several networks that may be the best is "
        "likely to be better than any one of them is expected to be."
    )


def band_rows(run: Run) -> list[Mapping[str, str]]:
    """The band against the first cost at each member of the front, as text."""
    cost = run.costs[0]
    band = band_of(run, cost)
    rows: list[Mapping[str, str]] = []
    for trial in run.front if band is not None else ():
        value = _cost(trial, cost)
        there = band.there(value) if band is not None and value is not None else None
        if there is not None:
            low, median, high = map(percent_text, there)
            told = {"number": str(trial.number), "cost": cost_text(cost, value)}
            told |= {"expected": percent_text(trial.estimate)}
            rows.append(told | {"low": low, "median": median, "high": high})
    return rows


def span(run: Run, cost: str) -> tuple[float, float] | None:
    """The lowest and the highest top-1 of the band; None where there is none."""
    band = band_of(run, cost)
    if band is None:
        return None
    return float(band.found.low.min()), float(band.found.high.max())
