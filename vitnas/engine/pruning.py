"""Early stopping when the goal is accuracy against FLOPs.

At a rung (an epoch) a trial is compared with every trial that has reached it. They are ranked by
non-dominated front in (top-1, FLOPs), so a cheap network competes with cheap ones. A trial on the
front of its rung is never stopped; of the rest the better share goes on. The decision is a pure
function of the curves in the study, so a resumed run decides as an uninterrupted one would.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vitnas.pareto import front_ranks

Point = tuple[int, float]
"""(FLOPs, top-1 in percent)."""


@dataclass(frozen=True)
class FrontRankPruner:
    """Successive halving by front rank.

    Attributes:
        rungs: epochs at which a trial may be stopped, ascending; empty = never.
        keep: share of the trials at a rung that may go on, front members always among them.
        min_peers: trials that must have reached the rung before anything is stopped.
    """

    rungs: tuple[int, ...]
    keep: float = 0.5
    min_peers: int = 4

    def should_stop(self, epoch: int, candidate: Point, peers: Iterable[Point]) -> bool:
        """Whether `candidate` stops at `epoch`.

        Args:
            epoch: epochs trained, from 1.
            candidate: FLOPs and top-1 of the trial now.
            peers: FLOPs and top-1 of the other trials when they were at this epoch.
        """
        if epoch not in self.rungs:
            return False
        others = list(peers)
        if len(others) < self.min_peers:
            return False
        ranks = front_ranks([(-top1, math.log(flops)) for flops, top1 in [candidate, *others]])
        if ranks[0] == 0:
            return False
        ahead = int((ranks < ranks[0]).sum())
        return ahead >= math.ceil(self.keep * len(ranks))


def default_rungs(epochs: int) -> tuple[int, ...]:
    """Rungs at one sixth and five twelfths of the training, as measured best in a replay of 152
    networks (2 and 5 of 12); none for trainings too short to judge."""
    rungs: Sequence[int] = (round(epochs / 6), round(epochs * 5 / 12))
    return tuple(sorted({rung for rung in rungs if 1 <= rung < epochs})) if epochs >= 4 else ()
