"""Where new networks come from, and which of them are worth a training."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from vitnas.config.space import SearchSpace
from vitnas.cost.limits import over_limits
from vitnas.cost.survey import all_within
from vitnas.engine.decide.ledger import Ledger
from vitnas.engine.decide.locate import Candidate
from vitnas.records import Outcome, TrialRecord

if TYPE_CHECKING:
    from optuna.samplers import BaseSampler

REPEATS_BEFORE_RANDOM = 5
MISSES_BEFORE_LISTING, MISSES_BEFORE_RANDOM, MAX_FRUITLESS = 20, 200, 2000
"""Draws in a row without a new network within the limits: the networks of a small space are listed,
the next draws are random, and no more are made. A sampler that finds nothing may take a quarter of
a second for each draw. Where one of a hundred networks is within the limits, 2,000 draws miss once
in 500 million times."""


class Candidates:
    """Draws until a network is new and within the limits; answers or refuses the others at once.

    Requested networks come first, then proposals of the sampler. After `REPEATS_BEFORE_RANDOM`
    known networks in a row the next draw is random, because Optuna's samplers may repeat
    themselves; so it is after `MISSES_BEFORE_RANDOM` that were known or outside the limits.

    Args:
        ledger: records every draw.
        space: where networks are drawn from.
        sampler: who proposes.
        random: who draws at random.
        first: what comes before that.

    Attributes:
        ended_by: why the last draw found nothing; None where it found a network.
    """

    def __init__(
        self,
        ledger: Ledger,
        space: SearchSpace,
        sampler: BaseSampler,
        random: BaseSampler,
        first: Iterable[Candidate],
    ) -> None:
        self._ledger, self._space = ledger, space
        self._sampler, self._random = sampler, random
        self._first = deque(first)
        self._all_keys: frozenset[str] | None = None
        self.ended_by: str | None = None

    def draw(self) -> int | None:
        """A new network within the limits, as a trial number; None when none is found."""
        while self._first:
            candidate = self._first.popleft()
            if not self.is_known(candidate):
                trial = self._draw_once(candidate)
                if trial.outcome is Outcome.RUNNING:
                    return trial.number
        repeats = 0
        for misses in range(MAX_FRUITLESS):
            lists = repeats == REPEATS_BEFORE_RANDOM or misses == MISSES_BEFORE_LISTING
            if lists and self._nothing_left():
                self.ended_by = "the space has nothing new to show"
                return None
            use_random = repeats >= REPEATS_BEFORE_RANDOM or misses >= MISSES_BEFORE_RANDOM
            self._ledger.store.study.sampler = self._random if use_random else self._sampler
            trial = self._draw_once()
            if trial.outcome is Outcome.RUNNING:
                return trial.number
            repeats = repeats + 1 if trial.outcome is Outcome.DUPLICATE else 0
        self.ended_by = f"{MAX_FRUITLESS:,} draws in a row were known or outside the limits"
        return None

    def repeat(self, original: TrialRecord, seed: int) -> int:
        """One more training of a network, with another seed, as a trial number."""
        store = self._ledger.store
        store.study.sampler = self._random  # has nothing to say: all is given
        same = Candidate("", original.params, original.key)
        again = self._ledger.enter(same, seed=seed, replicate_of=original.number).number
        self._ledger.copy_measured(again, original)
        store.begin(again)
        return again

    def admit(self, trial: TrialRecord) -> TrialRecord:
        """Refuse a described candidate, answer it from the study, or let it train."""
        problem = over_limits(trial, self._space.config.limits)
        if problem:
            return self._ledger.end(trial.number, Outcome.REFUSED, error=problem)
        original = self._ledger.number_of(trial.key)
        if original is not None:
            return self._ledger.answer(trial.number, original)
        self._ledger.own(trial.number)
        return trial

    def is_known(self, candidate: Candidate) -> bool:
        """Whether a network is in training or its result is there."""
        return self._ledger.number_of(candidate.key) is not None

    def _draw_once(self, candidate: Candidate | None = None) -> TrialRecord:
        trial = self._ledger.enter(candidate)
        if trial.outcome is Outcome.RUNNING:
            trial = self.admit(trial)
        if trial.outcome is Outcome.RUNNING:
            self._ledger.store.begin(trial.number)
        return trial

    def _nothing_left(self) -> bool:
        """Whether every network of a small space is known already."""
        if self._all_keys is None:
            self._all_keys = all_within(self._space) or frozenset({"too many to list"})
        return self._all_keys <= self._ledger.keys
