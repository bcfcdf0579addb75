"""The front against the baselines at like FLOPs: by how many points, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import log, sqrt
from typing import NamedTuple

from vitnas.noise import PRIOR_DEGREES, Noise
from vitnas.records import BaselineRecord, Outcome, Run, TrialRecord

_SURE = 1.96  # half of a 95 % interval in standard errors


class Scored(NamedTuple):
    """A network in the comparison.

    Attributes:
        flops: multiply-adds of one image.
        chosen_by: top-1 in percent by which it is preferred to cheaper ones.
        top1: top-1 in percent that counts.
        name: of its family; empty for a candidate.
    """

    flops: float
    chosen_by: float
    top1: float
    name: str = ""


class Stretch(NamedTuple):
    """A range of FLOPs in which both sides have one best network."""

    low: float
    high: float
    ours: Scored
    theirs: Scored


@dataclass(frozen=True)
class Versus:
    """What the comparison found.

    Attributes:
        points: front minus best baseline, mean over log FLOPs, in points of top-1.
        error: its standard error in points, from the number of images.
        low, high: the FLOPs that both sides cover.
        share: of that range by log, where the front is above, 0 to 1.
        ahead: where a family of baselines is above: its name and the range of FLOPs.
        num_images: that top-1 was measured on.
        on_test: whether these are the test images.
    """

    points: float
    error: float
    low: float
    high: float
    share: float
    ahead: tuple[tuple[str, float, float], ...]
    num_images: int
    on_test: bool

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, in points."""
        return self.points - _SURE * self.error, self.points + _SURE * self.error

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out 0."""
        low, high = self.interval
        return low > 0 or high < 0


def versus(run: Run) -> Versus | None:
    """Compare a run's front with its baselines; None where one of them is missing.

    Each side offers, for every number of FLOPs, its best network of at most so many, chosen on the
    scoring split. What counts is its top-1 on the test images, which were used for nothing else:
    a choice among many on the scoring split does not flatter it there. Where some network has no
    test score, the scoring split counts. A side reaches from its cheapest network to the costliest
    that was trained to the end.
    """
    data, theirs = run.environment.data, _complete(run.baselines)
    members = [trial for trial in run.front if trial.flops > 0]
    on_test = None not in [*(t.test_top1 for t in members), *(b.test_top1 for b in theirs)]
    images = data.num_test_images if on_test else data.num_val_images
    if not members or not theirs or not images:
        return None
    low = max(min(t.flops for t in members), min(b.flops for b in theirs))
    high = min(max(t.flops for t in run.complete), max(b.flops for b in theirs))
    if low > high:
        return None
    ours = [_scored(trial, on_test) for trial in members]
    rivals = [_scored(one, on_test, one.family) for one in theirs]
    stretches = list(stretches_of(ours, rivals, low, high))
    scatter = 1.0 if run.noise is None else run.noise.dispersion
    noise = Noise(scatter, PRIOR_DEGREES, images)
    points, error = difference(stretches, noise.error)
    ahead = tuple(_ahead(stretches))
    above = sum(_weight(s, low, high) for s in stretches if s.ours.top1 > s.theirs.top1)
    return Versus(points, error, low, high, above, ahead, images, on_test)


def stretches_of(
    ours: Sequence[Scored], theirs: Sequence[Scored], low: float, high: float
) -> Iterator[Stretch]:
    """Where neither side's best network changes, from `low` to `high` FLOPs."""
    inside = {one.flops for one in (*ours, *theirs) if low < one.flops < high}
    edges = sorted({low, high, *inside})
    for start, end in pairwise(edges) if low < high else [(low, high)]:
        yield Stretch(start, end, _best(ours, start), _best(theirs, start))


def difference(
    stretches: Sequence[Stretch], error_of: Callable[[float], float]
) -> tuple[float, float]:
    """Mean difference over log FLOPs in points, and its standard error.

    Args:
        stretches: adjacent ones.
        error_of: standard error of a top-1 in percent; scores of different networks are taken as
            independent.
    """
    low, high = stretches[0].low, stretches[-1].high
    shares: dict[Scored, float] = {}
    for stretch in stretches:
        weight = _weight(stretch, low, high)
        shares[stretch.ours] = shares.get(stretch.ours, 0.0) + weight
        shares[stretch.theirs] = shares.get(stretch.theirs, 0.0) - weight
    points = sum(share * one.top1 for one, share in shares.items())
    return points, sqrt(sum((share * error_of(one.top1)) ** 2 for one, share in shares.items()))


def _weight(stretch: Stretch, low: float, high: float) -> float:
    return log(stretch.high / stretch.low) / log(high / low) if low < high else 1.0


def _best(networks: Iterable[Scored], flops: float) -> Scored:
    affordable = (one for one in networks if one.flops <= flops)
    return max(affordable, key=lambda one: (one.chosen_by, -one.flops))


def _ahead(stretches: Iterable[Stretch]) -> Iterator[tuple[str, float, float]]:
    def winner(stretch: Stretch) -> str:
        return stretch.theirs.name if stretch.theirs.top1 > stretch.ours.top1 else ""

    for name, group in groupby(stretches, key=winner):
        if name:
            won = list(group)
            yield name, won[0].low, won[-1].high


def _complete(baselines: Iterable[BaselineRecord]) -> list[BaselineRecord]:
    return [b for b in baselines if b.outcome is Outcome.COMPLETE and b.flops > 0 and b.curve]


def _scored(one: TrialRecord | BaselineRecord, on_test: bool, name: str = "") -> Scored:
    top1 = one.top1 or 0.0
    return Scored(one.flops, top1, (one.test_top1 or 0.0) if on_test else top1, name)
