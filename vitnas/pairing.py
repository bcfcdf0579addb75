"""Networks of two sides at equal FLOPs: who stands against whom, and how much each counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from math import log
from typing import NamedTuple

_PLACES = 500


class Scored(NamedTuple):
    """A network in the comparison.

    Attributes:
        flops: multiply-adds of one image.
        chosen_by: top-1 in percent by which it is chosen, on the scoring split: ours expected,
            theirs scored.
        top1: top-1 in percent that is compared, the mean over its trainings.
        name: name of its family; empty for a candidate.
        trainings: number of trainings with a top-1 that is compared.
    """

    flops: float
    chosen_by: float
    top1: float
    name: str = ""
    trainings: int = 1


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


def shares_of(places: Sequence[Pairing]) -> dict[Scored, float]:
    """What each network contributes to the mean difference over places that are evenly spaced over
    log FLOPs: ours in all 1, theirs -1; those that contribute nothing are left out."""
    shares: dict[Scored, float] = defaultdict(float)
    for place in places:
        shares[place.ours] += 1 / len(places)
        for one, share in zip(place.theirs, (1 - place.share, place.share), strict=True):
            shares[one] -= share / len(places)
    return {one: share for one, share in shares.items() if share}


def ranges_ahead(places: Sequence[Pairing]) -> Iterator[tuple[str, float, float]]:
    """Ranges of FLOPs in which a family is above us: its name, the lowest and the highest."""

    def winner(place: Pairing) -> str:
        return place.theirs[0].name if place.gain < 0 else ""

    for name, group in groupby(places, key=winner):
        if name:
            won = list(group)
            yield name, won[0].flops, won[-1].flops
