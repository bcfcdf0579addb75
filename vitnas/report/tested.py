"""The front by scoring images against the front by test images, and how optimistic scores are.

A member's scoring and test top-1, s and t in percent, are of the same trained networks, so seeds do
not part them; the two draws of images do. With N and M images and u = t / 100, their difference
has the binomial variance 1e4 u (1 - u) (1 / N + 1 / M). All members share the images, so their
errors go together by an unknown part. The interval takes them as one error, the widest case:

    mean(s - t) +- 1.96 mean(sqrt(1e4 u (1 - u) (1 / N + 1 / M)))

Between two further fronts lies what the members truly are on test. The optimistic one is the front
that choosing among them by test would give; the pessimistic one holds those that dominate no other
by test, the worst to be had (Feurer et al. 2023, "Mind the Gap: Measuring Generalization
Performance Across Multiple Objectives"). At the costs of a member they are at

    max t of the members that cost at most as much,  min t of those that cost at least as much
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot
from statistics import fmean

from vitnas.noise import binomial_error
from vitnas.pareto import front
from vitnas.records import TrialRecord
from vitnas.report.text import NORMAL, NOTHING, listed, percent_text, plural, signed_text
from vitnas.run import Run

_NAMED = 6


@dataclass(frozen=True)
class Tested:
    """What the test images say of the front.

    Attributes:
        num_members: front members with a test top-1; no other network has one.
        num_untested: front members without one, as in a run that was stopped before its end.
        beaten_by: those that fall off by test top-1, each with the best one that dominates it.
        gap: mean of scoring minus test top-1, in points; above 0, scores are optimistic.
        interval: of `gap`, 95 %; None where the number of images is not known.
        least, most: of the members' own gaps.
        expected_gap: the same mean for expected top-1; None where it is not known.
        ends: of each member by trial number, test top-1 of the pessimistic and of the optimistic
            front at its costs.
        top1: mean test top-1 of the members.
    """

    num_members: int
    num_untested: int
    beaten_by: Mapping[int, int]
    gap: float
    interval: tuple[float, float] | None
    least: float
    most: float
    expected_gap: float | None
    ends: Mapping[int, tuple[float, float]]
    top1: float

    def is_on_front(self, trial: TrialRecord) -> int | None:
        """1 for a front member that stays on it by test top-1, 0 for one that falls off; None for
        one without a test top-1."""
        return None if trial.mean_test_top1 is None else int(trial.number not in self.beaten_by)


def compare_by_test(run: Run) -> Tested | None:
    """The comparison; None if no front member has a test top-1."""
    members = [trial for trial in run.front if trial.mean_test_top1 is not None]
    if not members:
        return None
    gaps = [(trial.top1 or 0.0) - _test(trial) for trial in members]
    gap, error = fmean(gaps), _error(run, members)
    expected = [one.expected.top1 - _test(one) for one in members if one.expected is not None]
    return Tested(
        num_members=len(members),
        num_untested=len(run.front) - len(members),
        beaten_by=_beaten(members, run.costs),
        gap=gap,
        interval=None if error is None else (gap - NORMAL * error, gap + NORMAL * error),
        least=min(gaps),
        most=max(gaps),
        expected_gap=fmean(expected) if len(expected) == len(members) else None,
        ends=_ends(members, run.costs),
        top1=fmean(map(_test, members)),
    )


def _error(run: Run, members: Sequence[TrialRecord]) -> float | None:
    data = run.environment.data
    scoring, test = data.num_val_images, data.num_test_images
    if not scoring or not test:
        return None
    tops = [_test(trial) for trial in members]
    return fmean(hypot(binomial_error(t, scoring), binomial_error(t, test)) for t in tops)


def _beaten(members: Sequence[TrialRecord], costs: Sequence[str]) -> dict[int, int]:
    points = {one.number: (-_test(one), *one.minimized(costs)) for one in members}
    numbers = list(points)
    winners = sorted((numbers[i] for i in front(list(points.values()))), key=lambda n: points[n])
    return {
        number: next(winner for winner in winners if _is_as_good(points[winner], point))
        for number, point in points.items()
        if number not in winners
    }


def _ends(members: Sequence[TrialRecord], costs: Sequence[str]) -> dict[int, tuple[float, float]]:
    known = [(one.number, one.minimized(costs), _test(one)) for one in members]
    return {
        number: (
            min(top1 for _, other, top1 in known if _is_as_good(own, other)),
            max(top1 for _, other, top1 in known if _is_as_good(other, own)),
        )
        for number, own, _ in known
    }


def _is_as_good(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(one, other, strict=True))


def _test(trial: TrialRecord) -> float:
    return trial.mean_test_top1 or 0.0


def by_test_text(found: Tested | None, trial: TrialRecord) -> str:
    """`stays`, `behind 12` or a dash for a front member without a test top-1."""
    if found is None or trial.mean_test_top1 is None:
        return NOTHING
    winner = found.beaten_by.get(trial.number)
    return "stays" if winner is None else f"behind {winner}"


def comparison_text(found: Tested | None) -> str:
    """The comparison in a short paragraph."""
    if found is None:
        return (
            "No front member has a test top-1. The front is chosen by its scores, so its scores "
            "are optimistic: the best of many noisy measurements is partly luck."
        )
    low_high = (
        ""
        if found.interval is None
        else (" (95 % interval {} to {})".format(*map(signed_text, found.interval)))
    )
    ends = f"{signed_text(found.least)} to {signed_text(found.most)}"
    text = (
        f"{_stays(found)}{_untested(found)}{_between(found)} Scoring minus test top-1 is "
        f"{signed_text(found.gap)} points on average{low_high}, and from {ends} in "
        "single networks"
    )
    if found.expected_gap is not None:
        text += f"; expected minus test top-1 is {signed_text(found.expected_gap)} on average"
    text += (
        ". Above 0, scores are optimistic: luck of a choice by noisy scores, or harder test images."
    )
    if found.interval is not None:
        text += (
            " The interval is of the images of both splits. All networks share them, so it does "
            "not shrink with the number of networks."
        )
    return text


def _stays(found: Tested) -> str:
    off, number = found.beaten_by, found.num_members
    if number == 1:
        return "The front's one member with a test top-1 has no other to be compared with."
    if not off:
        members = "both" if number == 2 else f"all {number}"
        return f"By test top-1 {members} front members stay on the front."
    named = [f"trial {one} (behind {other})" for one, other in list(off.items())[:_NAMED]]
    named += [f"{len(off) - _NAMED} more"] if len(off) > _NAMED else []
    fall = "falls" if len(off) == 1 else "fall"
    return (
        f"By test top-1 {number - len(off)} of {number} front members stay on the front; "
        f"{listed(named)} {fall} off. Test scores scatter, too, and no other network has one."
    )


def _between(found: Tested) -> str:
    """The two further fronts, where they differ."""
    if not found.beaten_by:
        return ""
    worst, best = (fmean(ends) for ends in zip(*found.ends.values(), strict=True))
    return (
        f" Their mean test top-1 is {percent_text(found.top1)} %; it would be "
        f"{percent_text(best)} % with the best of them by test at each cost (the optimistic test "
        f"front) and {percent_text(worst)} % with the worst (the pessimistic one)."
    )


def _untested(found: Tested) -> str:
    number = found.num_untested
    have = "has" if number == 1 else "have"
    return f" {plural(number, 'front member')} {have} no test top-1 yet." if number else ""
