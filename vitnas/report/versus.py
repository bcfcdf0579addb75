"""The front against the baselines at equal FLOPs: a difference in points, and its error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import log, sqrt
from typing import NamedTuple

from vitnas.noise import PRIOR_DEGREES, Noise
from vitnas.records import BaselineRecord, Outcome, TrialRecord
from vitnas.run import Run

_PLACES = 500
_SURE = 1.96  # half of a 95 % interval in standard errors


class Scored(NamedTuple):
    """A network in the comparison.

    Attributes:
        flops: multiply-adds of one image.
        chosen_by: top-1 in percent by which it is chosen, on the scoring split: ours expected,
            theirs scored.
        top1: top-1 in percent that is compared.
        name: name of its family; empty for a candidate.
    """

    flops: float
    chosen_by: float
    top1: float
    name: str = ""


class Pairing(NamedTuple):
    """One number of FLOPs, and the networks of both sides there.

    Attributes:
        flops: multiply-adds of one image.
        ours: our network.
        theirs: the next smaller and the next larger member of a family; beyond the largest member,
            this member twice.
        share: position of `flops` between these two, in log FLOPs, 0 to 1.
    """

    flops: float
    ours: Scored
    theirs: tuple[Scored, Scored]
    share: float

    @property
    def gain(self) -> float:
        """Our top-1 minus theirs, in points."""
        return self.ours.top1 - self.rival(lambda one: one.top1)

    def rival(self, value: Callable[[Scored], float]) -> float:
        """A value of theirs: interpolated between the two members along log FLOPs."""
        smaller, larger = map(value, self.theirs)
        return smaller + self.share * (larger - smaller)


@dataclass(frozen=True)
class Versus:
    """The result of the comparison.

    Attributes:
        points: front minus best baseline in points of top-1, as a mean over log FLOPs.
        error: its standard error in points, from the number of images.
        low, high: the range of FLOPs that both sides cover.
        share: share of this range, in log FLOPs, in which the front is above, 0 to 1.
        ahead: ranges in which a family of baselines is above: (name, low, high).
        num_images: number of images on which top-1 was measured.
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
        """95 % interval of `points`."""
        return self.points - _SURE * self.error, self.points + _SURE * self.error

    @property
    def is_sure(self) -> bool:
        """Whether the interval does not contain 0."""
        low, high = self.interval
        return low > 0 or high < 0


def versus(run: Run) -> Versus | None:
    """Compare a run's front with its baselines.

    At a number of FLOPs, our side is the best network with at most so many. A family of baselines
    could be built at any width. So its value is interpolated along log FLOPs between the next
    smaller and the next larger member; beyond its largest member it is that member's. Their side is
    the best family.

    Our network is chosen by its expected top-1, their family by its scores, both on the scoring
    split. Then top-1 on the test images is compared. Test images were used for nothing else, so a
    choice among many networks does not make it optimistic. If a network has no test score, the
    scoring split is compared.

    A side covers the FLOPs from its cheapest to its most expensive network that was trained to the
    end.

    Returns:
        None if the run has no front, no complete baseline, no common range of FLOPs, or no known
        number of images.
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
    ours = [_scored(trial, trial.estimate, on_test) for trial in members]
    rivals = [_scored(one, one.top1, on_test, one.family) for one in theirs]
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
    """Both sides at the middles of `_PLACES` equal parts of log FLOPs from `low` to `high`."""
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
    """The two members next to `flops`, and its position between them in log FLOPs, 0 to 1."""
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
        places: evenly spaced over log FLOPs.
        error_of: standard error of a top-1 in percent. Scores of different networks count as
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


def _scored(
    one: TrialRecord | BaselineRecord, chosen_by: float | None, on_test: bool, name: str = ""
) -> Scored:
    top1 = one.test_top1 if on_test else one.top1
    return Scored(one.flops, chosen_by or 0.0, top1 or 0.0, name)
