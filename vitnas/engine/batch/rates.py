"""Which learning rates a family of reference networks is tried at, and which of them it then has.

The recipe of a space is chosen for its own networks, and a convolution by the book may want several
times the rate of a network with attention. So one member of each family climbs by factors of two
from the recipe's rate until a rate is better than both beside it; its scoring images decide. The
other members take the family's rate. Those that decide a comparison climb on from there. Where all
rates diverge, lower ones follow, down to an eighth of the recipe's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from vitnas.records import Outcome

USUAL_CLIMB = 2.8
"""Rates that a climb tries beside the one it starts from, on average over 13 climbs of a search of
`fashion_32`; two at least."""
_FURTHEST = 8.0  # from the recipe's rate, both ways
_MOST = 1.0  # that a recipe can have


class _Sized(Protocol):
    @property
    def flops(self) -> int: ...


_Member = TypeVar("_Member", bound=_Sized)


def pilot(family: Sequence[_Member]) -> _Member:
    """The member that finds the rate of its family: in the middle of its sizes, the smaller of two.

    Args:
        family: all members that a run has; not empty.
    """
    return sorted(family, key=lambda member: member.flops)[(len(family) - 1) // 2]


def within_reach(own: float) -> tuple[float, ...]:
    """All rates that may be tried where `own` is the recipe's, the lowest first."""
    rates = [own / _FURTHEST]
    while (higher := 2 * rates[-1]) <= min(own * _FURTHEST, _MOST):
        rates.append(higher)
    return tuple(rates)


def said_of(outcome: Outcome, top1: float | None) -> float | None:
    """What a training says of its rate: top-1 in percent; None where it diverged; 0 where it failed
    otherwise, as for want of memory, which is not the rate's doing."""
    return None if outcome is Outcome.DIVERGED else top1 or 0.0


def untried(tried: Mapping[float, float | None], start: float, own: float) -> list[float]:
    """The rates to try next; none once the best one has been tried between its neighbours, or all
    down to the lowest within reach diverge.

    The start and its neighbours come together, so that a run that was stopped among them climbs as
    if it had not been.

    Args:
        tried: what the training at each rate says of it, see `said_of`.
        start: the rate to climb from, one within reach.
        own: the recipe's rate.
    """
    reach = within_reach(own)
    first = [lr for lr in (start, start / 2, start * 2) if lr in reach]
    best = start if not set(tried).issuperset(first) else best_rate(tried)
    return [lr for lr in (best, best / 2, best * 2) if lr in reach and lr not in tried]


def best_rate(tried: Mapping[float, float | None]) -> float:
    """The rate of the highest top-1; of equal ones the middle one, the lower of two. The lowest
    where all diverge.

    Args:
        tried: as of `untried`; not empty.
    """
    if all(top1 is None for top1 in tried.values()):
        return min(tried)
    reached = {lr: -1.0 if top1 is None else top1 for lr, top1 in tried.items()}
    best = sorted(lr for lr, top1 in reached.items() if top1 == max(reached.values()))
    return best[(len(best) - 1) // 2]
