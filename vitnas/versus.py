"""The front against the baselines at equal FLOPs: a difference in points, and its error.

The difference is a sum of test top-1 over networks, each with a share: D = sum_i w_i T_i. Our
shares sum to 1, theirs to -1. T_i is the mean over n_i trainings with different seeds, all scored
on the same N images. Let q be the share of seeds that classify an image correctly; p_i is the mean
of q over images, V_i the variance between the trainings of one network on these images. Then

    Var(T_i) = B_i - E[q (1 - q)] / N + V_i / n_i,    B_i = p_i (1 - p_i) / N.

The first two terms are the choice of images, which more seeds do not change. The second one needs
the answers of each training to each image. It is left out here, so that

    error^2 = sum_i w_i^2 (B_i + V_i / n_i)

is too large by at most min(B_i, V_i) for each network. V_i = phi B_i, where phi is pooled from all
networks with several trainings (`vitnas.noise`, without its prior). B_i counts as known and phi as
estimated, so the degrees of freedom of error^2 are Satterthwaite's (1946, Biometrics Bulletin 2(6),
pages 110 to 114), and the interval is Student's t.

Networks count as independent. This is exact for seeds. Images are the same for all networks. If the
errors from them are equally correlated for every two networks, the sum above is too large, because
the shares sum to 0. It is too small if networks of one side err more alike than those of both.

A side is chosen by its mean scores. A lucky seed is lucky on both splits, so the chosen networks'
test scores are slightly optimistic on both sides; the more trainings, the less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean
from typing import NamedTuple

from vitnas.noise import Noise, binomial_error, measure
from vitnas.pairing import Pairing, Scored, places_of, ranges_ahead, shares_of
from vitnas.records import BaselineRecord, Outcome, TrainingRecord, TrialRecord
from vitnas.run import Run

_LEAST = 1e-12  # squared points: seeds of few test images may agree
_SURE = 0.975  # the quantile that ends a 95 % interval


@dataclass(frozen=True)
class Versus:
    """The result of the comparison.

    Attributes:
        points: front minus best baseline in points of top-1, as a mean over log FLOPs.
        error: its standard error in points, from the number of images and the scatter over seeds.
        degrees: of freedom behind `error`; None if it is of the images alone, because no network
            was trained more than once.
        low, high: the range of FLOPs that both sides cover.
        share: share of this range, in log FLOPs, in which the front is above, 0 to 1.
        ahead: ranges in which a family of baselines is above: (name, low, high).
        num_images: number of images on which top-1 was measured.
        on_test: whether these are the test images.
        trainings: the fewest and the most trainings of a network that counts.
    """

    points: float
    error: float
    degrees: float | None
    low: float
    high: float
    share: float
    ahead: tuple[tuple[str, float, float], ...]
    num_images: int
    on_test: bool
    trainings: tuple[int, int]

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `points`."""
        return interval_of(self.points, self.error, self.degrees)

    @property
    def is_sure(self) -> bool:
        """Whether the interval does not contain 0."""
        low, high = self.interval
        return low > 0 or high < 0


class _Sides(NamedTuple):
    """Both sides of a comparison.

    Attributes:
        ours, theirs: their networks.
        low, high: the range of FLOPs that both cover.
        num_images, on_test: see `Versus`.
    """

    ours: list[Scored]
    theirs: list[Scored]
    low: float
    high: float
    num_images: int
    on_test: bool

    @property
    def places(self) -> list[Pairing]:
        return places_of(self.ours, self.theirs, self.low, self.high)


def versus(run: Run) -> Versus | None:
    """Compare a run's front with its baselines.

    At a number of FLOPs, our side is the best network with at most so many. A family of baselines
    could be built at any width. So its value is interpolated along log FLOPs between the next
    smaller and the next larger member; beyond its largest member it is that member's. Their side is
    the best family.

    Our network is chosen by its expected top-1, their family by its scores, both on the scoring
    split. Then top-1 on the test images is compared. Test images were used for nothing else, so a
    choice among many networks does not make it optimistic. If a network has no test score, the
    scoring split is compared, and ours counts with its expected top-1: the score of the luckiest of
    many would flatter the front. Everything is the mean over a network's trainings.

    A side covers the FLOPs from its cheapest to its most expensive network that was trained to the
    end.

    Returns:
        None if the run has no front, no complete baseline, no common range of FLOPs, or no known
        number of images.
    """
    sides = _sides(run)
    if sides is None:
        return None
    places, num_images = sides.places, sides.num_images
    shares = shares_of(places)
    error, degrees = error_of(shares, num_images, _scatter(run, num_images, sides.on_test))
    numbers = [one.trainings for one in shares]
    return Versus(
        points=sum(share * one.top1 for one, share in shares.items()),
        error=error,
        degrees=degrees,
        low=sides.low,
        high=sides.high,
        share=sum(place.gain > 0 for place in places) / len(places),
        ahead=tuple(ranges_ahead(places)),
        num_images=num_images,
        on_test=sides.on_test,
        trainings=(min(numbers), max(numbers)),
    )


def counting(run: Run) -> list[BaselineRecord]:
    """The baselines that decide the comparison: those with a share in it. Others change nothing."""
    sides = _sides(run)
    shares = shares_of(sides.places) if sides else {}
    names = {(one.name, one.flops) for one in shares}
    return [one for one in run.baselines if (one.family, one.flops) in names]


def contending(run: Run) -> list[BaselineRecord]:
    """The baselines that decide the comparison, and those that would if a family that decides were
    absent: the second best ones, which may be the best at another learning rate."""
    first = counting(run)
    second = [
        one
        for family in {one.family for one in first}
        for one in counting(replace(run, baselines=_without(run.baselines, family)))
    ]
    names = {(one.family, one.flops) for one in (*first, *second)}
    return [one for one in run.baselines if (one.family, one.flops) in names]


def _without(baselines: Iterable[BaselineRecord], family: str) -> tuple[BaselineRecord, ...]:
    return tuple(one for one in baselines if one.family != family)


def _sides(run: Run) -> _Sides | None:
    """What is compared; None where `versus` is."""
    data, theirs = run.environment.data, _complete(run.baselines)
    members = [trial for trial in run.front if trial.flops > 0]
    on_test = all(one.test_trainings for one in (*members, *theirs))
    images = data.num_test_images if on_test else data.num_val_images
    if not members or not theirs or not images:
        return None
    low = max(min(t.flops for t in members), min(b.flops for b in theirs))
    high = min(max(t.flops for t in run.complete), max(b.flops for b in theirs))
    if low > high:
        return None
    ours = [_scored(trial, trial.estimate, on_test) for trial in members]
    rivals = [_scored(one, one.top1, on_test, one.family) for one in theirs]
    return _Sides(ours, rivals, low, high, images, on_test)


def _scatter(run: Run, num_images: int, on_test: bool) -> Noise | None:
    """How far trainings scatter on the compared images; None if no network was trained twice.

    A run whose replicates have no test scores only tells how far they scatter on the scoring split.
    """
    known = [_compared(one, on_test) for one in (*run.complete, *_complete(run.baselines))]
    found = measure([values for values in known if values], num_images)
    return found.without_prior or (run.noise and run.noise.without_prior)


def error_of(
    shares: Mapping[Scored, float], num_images: int, seeds: Noise | None
) -> tuple[float, float | None]:
    """Standard error in points of a sum of top-1, and its degrees of freedom.

    Args:
        shares: of each network in the sum.
        num_images: on which top-1 was measured.
        seeds: the scatter of a network's trainings; None leaves it out, and there are no degrees of
            freedom.
    """
    known = shares.items()
    images = sum((w * binomial_error(one.top1, num_images)) ** 2 for one, w in known)
    if seeds is None:
        return sqrt(images), None
    again = sum((w * seeds.error(one.top1, one.trainings)) ** 2 for one, w in known)
    return sqrt(images + again), seeds.degrees * (1 + images / max(again, _LEAST)) ** 2


def interval_of(points: float, error: float, degrees: float | None) -> tuple[float, float]:
    """95 % interval of a sum of top-1: Student's t, or normal without degrees of freedom.

    Args:
        points: the sum.
        error, degrees: see `error_of`.
    """
    from scipy.special import ndtri, stdtrit  # imported here: `counting` does not need it

    wide = float(ndtri(_SURE) if degrees is None else stdtrit(degrees, _SURE))
    return points - wide * error, points + wide * error


def _complete(baselines: Iterable[BaselineRecord]) -> list[BaselineRecord]:
    return [b for b in baselines if b.outcome is Outcome.COMPLETE and b.flops > 0 and b.curve]


def _compared(one: TrainingRecord, on_test: bool) -> tuple[float, ...]:
    return one.test_trainings if on_test else one.trainings


def _scored(
    one: TrialRecord | BaselineRecord, chosen_by: float | None, on_test: bool, name: str = ""
) -> Scored:
    values = _compared(one, on_test)
    top1 = fmean(values)
    if isinstance(one, TrialRecord) and not on_test:
        top1 = one.estimate or top1
    return Scored(one.flops, chosen_by or 0.0, top1, name, len(values))
