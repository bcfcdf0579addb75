"""After long trainings: a run's network against the best baseline of like FLOPs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

from vitnas.config.baseline import LIKE_FLOPS
from vitnas.errors import typed
from vitnas.longer import PROXY, LongResult, trials_of
from vitnas.noise import Noise, measure
from vitnas.pairing import Scored
from vitnas.report.longer import flops_of
from vitnas.report.text import count_text, percent_text, plural, signed_text
from vitnas.run import Run
from vitnas.versus import error_of, interval_of

_MOST = 3
FIRST = "vgg"
"""The family of baselines that every search trains."""


@dataclass(frozen=True)
class Against:
    """A network and a baseline after long trainings.

    Both have one setting, unless the baseline did not start from nothing.

    Attributes:
        ours, theirs: their results.
        sides: what is compared of ours and of theirs.
        interval: 95 %, of `points`.
        has_seeds: whether the interval is of seeds, too, and not of the images alone.
        num_images: on which top-1 was measured.
        on_test: whether these are the test images, else those that score candidates.
    """

    ours: LongResult
    theirs: LongResult
    sides: tuple[Scored, Scored]
    interval: tuple[float, float]
    has_seeds: bool
    num_images: int
    on_test: bool

    @property
    def points(self) -> float:
        """Ours minus theirs, in points of top-1."""
        ours, theirs = self.sides
        return ours.top1 - theirs.top1


def long_against(run: Run) -> tuple[Against, ...]:
    """Each network that was trained long, against the best baseline of like FLOPs trained so.

    The baseline is the one of the highest top-1 on the scoring images, within a factor of
    `LIKE_FLOPS` in FLOPs. Of several learning rates of ours, the one of the highest counts, too. A
    second baseline is the best of those that started from trained weights, by whatever recipe, and
    have at most `LIKE_FLOPS` times the FLOPs. Errors are those of `vitnas.versus`.
    """
    return tuple(found for group in run.long.settings for found in _pairs(run, group))


def _pairs(run: Run, group: Sequence[LongResult]) -> Iterator[Against]:
    baselines = [one for each in run.long.settings for one in each if one.trial is None]
    pretrained = [one for one in baselines if one.weights]
    fresh = [one for one in group if one.trial is None and not one.weights]
    for ours in trials_of(group):
        cost = flops_of(run, ours)
        like = [one for one in fresh if _are_like(cost, flops_of(run, one))]
        no_larger = [one for one in pretrained if 0 < flops_of(run, one) <= LIKE_FLOPS * cost]
        for rivals in filter(None, (like, no_larger)):
            rival = max(rivals, key=lambda one: one.top1)
            trained = group if rival in group else (*group, rival)
            found = _against(run, trained, ours, rival, (cost, flops_of(run, rival)))
            if found is not None:
                yield found


def _are_like(one: float, other: float) -> bool:
    return one > 0 and other > 0 and abs(log(one / other)) <= log(LIKE_FLOPS)


def _against(
    run: Run,
    group: Iterable[LongResult],
    ours: LongResult,
    theirs: LongResult,
    flops: tuple[int, int],
) -> Against | None:
    """The two of them; None where the number of images is not known."""
    on_test = ours.test_top1 is not None and theirs.test_top1 is not None
    images = _num_images(run, on_test)
    if not images:
        return None
    scatter = _scatter(group, images, on_test)
    first, second = (
        Scored(cost, one.top1, _mean(one, on_test), one.started, len(one.seeds))
        for one, cost in zip((ours, theirs), flops, strict=True)
    )
    _, interval = _difference([(first, second)], images, scatter)
    has_seeds = scatter is not None
    return Against(ours, theirs, (first, second), interval, has_seeds, images, on_test)


def _difference(
    pairs: Sequence[tuple[Scored, Scored]], images: int, scatter: Noise | None
) -> tuple[float, tuple[float, float]]:
    """Ours minus theirs in points, the mean over pairs, and its 95 % interval."""
    shares: dict[Scored, float] = {}
    for pair in pairs:
        for one, sign in zip(pair, (1, -1), strict=True):
            shares[one] = shares.get(one, 0.0) + sign / len(pairs)
    points = sum(share * one.top1 for one, share in shares.items())
    return points, interval_of(points, *error_of(shares, images, scatter))


def _num_images(run: Run, on_test: bool) -> int:
    """On how many a long training is scored, those of the first fold alone; 0 if not known."""
    data, source = run.environment.data, run.space.get("data")
    folds = source.get("folds") if isinstance(source, Mapping) else None
    scoring = (data.num_val_images or 0) // (folds if isinstance(folds, int) and folds > 0 else 1)
    return (data.num_test_images or 0) if on_test else scoring


def _mean(one: LongResult, on_test: bool) -> float:
    return one.test_top1 if on_test and one.test_top1 is not None else one.top1


def _scatter(group: Iterable[LongResult], images: int, on_test: bool) -> Noise | None:
    """How far these long trainings scatter; None if no network has several."""
    values = [one.all_test_top1 if on_test else one.all_top1 for one in group]
    return measure([one for one in values if one], images).without_prior


def against_text(run: Run) -> str:
    """What the long trainings say of ours and theirs in a few sentences; empty without any."""
    found = long_against(run)
    together = _together(found)
    others = [one for one in found if one not in together]
    text = " ".join([*_on_average(run, together), *map(_said, others[:_MOST])])
    if len(others) > _MOST:
        text += f" {len(others) - _MOST} more such pairs are in the table."
    return text + _to_measure_seeds(run, found)


def _to_measure_seeds(run: Run, found: Sequence[Against]) -> str:
    """What intervals of the images alone leave out, and how to measure it; empty where there is
    none."""
    once = next((one.ours for one in found if not one.has_seeds), None)
    if once is None:
        return ""
    how = "another `--seed` for each"
    if once.recipe == PROXY:
        how = f"`vitnas confirm {typed(run.path)} --epochs {once.epochs} --seeds 2`"
    return f" Seeds scatter further, most where networks are small: {how} measures it."


def _together(found: Sequence[Against]) -> Sequence[Against]:
    """Those of the first setting and on the same images whose baselines started from nothing, too;
    none where these are fewer than two."""
    fresh = [one for one in found if not one.theirs.weights]
    kinds = [(one.ours.setting, one.on_test) for one in fresh]
    same = [one for one, kind in zip(fresh, kinds, strict=True) if kind == kinds[0]]
    return same if len(same) > 1 else []


def _on_average(run: Run, some: Sequence[Against]) -> Iterator[str]:
    """All of some pairs of one setting in two sentences; nothing without any."""
    if not some:
        return
    first, number = some[0], len({one.ours.key for one in some})
    group = next(group for group in run.long.settings if first.ours in group)
    scatter = _scatter(group, first.num_images, first.on_test)
    points, interval = _difference([one.sides for one in some], first.num_images, scatter)
    theirs = "the best baselines of like FLOPs"
    text = _compared(f"{number} networks", "are", theirs, points, interval)
    yield f"After long trainings of {_how(first.ours)}, {text}, {_of_what(first)}."
    told, which, more = sorted(some, key=lambda one: one.sides[0].flops), "One by one", ""
    if len(told) > _MOST:
        more = f"; {len(told) - _MOST} more are in the table"
        told = [told[0], told[len(told) // 2], told[-1]]
        which = "The cheapest, one in the middle and the largest"
    yield f"{which}: {'; '.join(map(_in_short, told))}{more}."


def _in_short(one: Against) -> str:
    ours, theirs = _names(one)
    low, high = map(signed_text, one.interval)
    return f"{ours} {signed_text(one.points)} ({low} to {high}) against {theirs}"


def _names(one: Against) -> list[str]:
    return [
        f"{who.started} ({count_text(side.flops)} FLOPs)"
        for who, side in zip((one.ours, one.theirs), one.sides, strict=True)
    ]


def _of_what(one: Against) -> str:
    """What an interval is of, and on which images."""
    images = "test images" if one.on_test else "scoring images, which chose both"
    of = "of images and seeds" if one.has_seeds else "of the images alone"
    return f"{of}, on {one.num_images:,} {images}"


def _compared(
    ours: str, verb: str, theirs: str, points: float, interval: tuple[float, float]
) -> str:
    """Which of two sides is above, in a clause."""
    low, high = interval
    told = f"95 % interval {signed_text(low)} to {signed_text(high)}"
    if low > 0 or high < 0:
        side = "above" if points > 0 else "below"
        return f"{ours} {verb} {percent_text(abs(points))} points {side} {theirs}: {told}"
    return f"{ours} and {theirs} cannot be told apart: {signed_text(points)} points, {told}"


def _said(one: Against) -> str:
    ours, theirs = _names(one)
    if one.theirs.setting != one.ours.setting:
        theirs += f", trained further for {_how(one.theirs)}"
    text = _compared(ours, "is", theirs, one.points, one.interval)
    return f"After long trainings of {_how(one.ours)}, {text}, {_of_what(one)}."


def _how(one: LongResult) -> str:
    recipe = "the run's recipe" if one.recipe == PROXY else f"`{one.recipe}`"
    return f"{plural(one.epochs, 'epoch')} by {recipe}"


def next_baseline(run: Run) -> str:
    """The command that trains a baseline for the first network that was trained long and has none
    of like FLOPs to stand against; empty where nothing is missing."""
    known = {one.ours.key for one in long_against(run) if not one.theirs.weights}
    for group in run.long.settings:
        for ours in group:
            if ours.trial is not None and ours.key not in known:
                recipe = "" if ours.recipe == PROXY else f" --recipe {typed(ours.recipe)}"
                family = best_families(run, flops_of(run, ours))[0]
                return f"{_train(run, ours.trial, family)}{recipe} --epochs {ours.epochs} --to DIR"
    return ""


def to_compare(run: Run, number: int) -> str:
    """The command that trains a trial and a baseline of like FLOPs long; empty once it is done."""
    found = (one for one in long_against(run) if not one.theirs.weights)
    if any(one.ours.trial == number for one in found):
        return ""
    return f"vitnas confirm {typed(run.path)} --trial {number}"


def to_fine_tune(run: Run, number: int) -> str:
    """The command that fine-tunes published weights on the run's images; empty once the trial
    stands against such a network."""
    if any(one.ours.trial == number and one.theirs.weights for one in long_against(run)):
        return ""
    options = "--baseline timm:NAME --init-from timm:NAME --to fine_tuned"
    return f"vitnas train --for {typed(run.path)} {options}"


def best_families(run: Run, flops: int) -> tuple[str, ...]:
    """The families with a member of like FLOPs or fewer, by top-1 on the scoring images at these
    FLOPs, the best first; interpolated along log FLOPs as in `vitnas.versus`. `FIRST` where there
    is none."""
    import numpy as np

    families: dict[str, list[tuple[float, float]]] = {}
    for one in run.baselines:
        if one.top1 is not None and one.flops > 0:
            families.setdefault(one.family, []).append((log(one.flops), one.top1))
    there, place = {}, log(max(flops, 1))
    for family, members in families.items():
        known, top1 = zip(*sorted(members), strict=True)
        if known[0] <= place + log(LIKE_FLOPS):
            there[family] = float(np.interp(place, known, top1))
    return tuple(sorted(there, key=lambda family: -there[family])) or (FIRST,)


def _train(run: Run, number: int, family: str = "") -> str:
    baseline = f" --baseline {family}" if family else ""
    return f"vitnas train --for {typed(run.path)} --trial {number}{baseline}"
