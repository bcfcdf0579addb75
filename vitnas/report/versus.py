"""The front against the baselines at like FLOPs: by how many points, and how surely."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import log, sqrt
from typing import NamedTuple

from vitnas.noise import PRIOR_DEGREES, Noise
from vitnas.records import BaselineRecord, Outcome, Run, TrialRecord

_PLACES = 500
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


class Pairing(NamedTuple):
    """One number of FLOPs, and what each side has there.

    Attributes:
        flops: multiply-adds of one image.
        ours: our network.
        theirs: a family's next smaller and next larger member; the same one twice at its ends.
        share: how far `flops` lies from the smaller to the larger one by log, 0 to 1.
    """

    flops: float
    ours: Scored
    theirs: tuple[Scored, Scored]
    share: float

    @property
    def gain(self) -> float:
        """Ours minus theirs, in points of the top-1 that counts."""
        return self.ours.top1 - self.rival(lambda one: one.top1)

    def rival(self, value: Callable[[Scored], float]) -> float:
        """A value of theirs, between the two members along a line over log FLOPs."""
        smaller, larger = map(value, self.theirs)
        return smaller + self.share * (larger - smaller)


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

    At any number of FLOPs we have our best network of at most so many. A family has what lies on
    the line over log FLOPs between its next smaller and next larger member, since it could be had
    at any width, and beyond its largest that one; the best family there is theirs. Both are chosen
    on the scoring split. What counts is top-1 on the test images, which were used for nothing else:
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
    places = places_of(ours, rivals, low, high)
    scatter = 1.0 if run.noise is None else run.noise.dispersion
    noise = Noise(scatter, PRIOR_DEGREES, images)
    points, error = difference(places, noise.error)
    ahead = tuple(_ahead(places))
    above = sum(place.gain > 0 for place in places) / len(places)
    return Versus(points, error, low, high, above, ahead, images, on_test)


def places_of(
    ours: Sequence[Scored], theirs: Sequence[Scored], low: float, high: float
) -> list[Pairing]:
    """Both sides at the middles of `_PLACES` equal parts of the log FLOPs from `low` to `high`."""
    families: dict[str, list[Scored]] = {}
    for one in sorted(theirs, key=lambda one: one.flops):
        families.setdefault(one.name, []).append(one)
    number = _PLACES if low < high else 1
    at = [low * (high / low) ** ((index + 0.5) / number) for index in range(number)]
    return [_place(flops, ours, families.values()) for flops in at]


def _place(flops: float, ours: Iterable[Scored], families: Iterable[Sequence[Scored]]) -> Pairing:
    best = max((one for one in ours if one.flops <= flops), key=lambda one: one.chosen_by)
    there = [_between(family, flops) for family in families if family[0].flops <= flops]
    places = [Pairing(flops, best, pair, share) for pair, share in there]
    return max(places, key=lambda place: place.rival(lambda one: one.chosen_by))


def _between(family: Sequence[Scored], flops: float) -> tuple[tuple[Scored, Scored], float]:
    """The members next to `flops`, and how far it lies between them by log."""
    for smaller, larger in pairwise(family):
        if smaller.flops <= flops < larger.flops:
            share = log(flops / smaller.flops) / log(larger.flops / smaller.flops)
            return (smaller, larger), share
    return (family[-1], family[-1]), 0.0


def difference(
    places: Sequence[Pairing], error_of: Callable[[float], float]
) -> tuple[float, float]:
    """Mean difference over log FLOPs in points, and its standard error.

    Args:
        places: evenly over log FLOPs.
        error_of: standard error of a top-1 in percent; scores of different networks are taken as
            independent.
    """
    shares: dict[Scored, float] = defaultdict(float)
    for place in places:
        shares[place.ours] += 1 / len(places)
        for one, share in zip(place.theirs, (1 - place.share, place.share), strict=True):
            shares[one] -= share / len(places)
    points = sum(share * one.top1 for one, share in shares.items())
    return points, sqrt(sum((share * error_of(one.top1)) ** 2 for one, share in shares.items()))


def _ahead(places: Sequence[Pairing]) -> Iterator[tuple[str, float, float]]:
    def winner(place: Pairing) -> str:
        return place.theirs[0].name if place.gain < 0 else ""

    for name, group in groupby(places, key=winner):
        if name:
            won = list(group)
            yield name, won[0].flops, won[-1].flops


def _complete(baselines: Iterable[BaselineRecord]) -> list[BaselineRecord]:
    return [b for b in baselines if b.outcome is Outcome.COMPLETE and b.flops > 0 and b.curve]


def _scored(one: TrialRecord | BaselineRecord, on_test: bool, name: str = "") -> Scored:
    top1 = one.top1 or 0.0
    return Scored(one.flops, top1, (one.test_top1 or 0.0) if on_test else top1, name)
