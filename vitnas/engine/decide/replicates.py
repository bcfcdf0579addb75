"""Which network is trained again: one near the front whose place is uncertain because of noise,
or each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vitnas.config.costs import DEFAULT_COSTS
from vitnas.ranking import chances_by_number, expecting, near_front, noise_of
from vitnas.records import Outcome, TrialRecord, completed


class Replication:
    """Chooses which network a run trains again; the choice depends only on the run's results.

    Every network that is on the front, or has a chance of at least `PLAUSIBLE` to be, gets `wanted`
    replicates, one at a time. Front and chance are the report's, by expected top-1. The network
    with the fewest replicates comes first; among equals, the one whose place is least certain; then
    the lowest number. A replicate changes what is expected, so the chances are computed again after
    each. One that did not reach its end counts as made, because its seed would give the same result
    again.

    Args:
        wanted: replicates of a network.
        num_images: of the scoring split.
        costs: those among the objectives.
        of_all: whether each network that reached its end gets them, in the order of the trials.
    """

    def __init__(
        self,
        wanted: int,
        num_images: int,
        costs: Sequence[str] = DEFAULT_COSTS,
        of_all: bool = False,
    ) -> None:
        self.wanted, self.num_images, self._costs = wanted, num_images, costs
        self._of_all = of_all
        self._known: tuple[int, dict[int, float]] = (-1, {})

    def next(self, trials: Sequence[TrialRecord]) -> int | None:
        """The trial whose network is to be trained again now; None when none is.

        Args:
            trials: candidates and replicates of the run; what is in training counts as made.
        """
        if not self.wanted:
            return None
        made = Counter(trial.replicate_of for trial in trials)
        # of all: each is as uncertain, so that the lowest number comes first
        everyone = dict.fromkeys((trial.number for trial in completed(trials)), 0.5)
        chances = everyone if self._of_all else self._near(trials)
        due = {number: chance for number, chance in chances.items() if made[number] < self.wanted}
        return min(due, key=lambda n: (made[n], round(abs(due[n] - 0.5), 6), n), default=None)

    def _near(self, trials: Sequence[TrialRecord]) -> dict[int, float]:
        """Chances of what is or may be on the front, by number; computed again when a training has
        reached its end."""
        ended = sum(trial.outcome is Outcome.COMPLETE for trial in trials)
        if self._known[0] != ended:
            known = completed(trials)
            noise = noise_of(known, self.num_images)
            known = list(expecting(known, noise, self._costs))
            chances = chances_by_number(known, noise, self._costs)
            self._known = ended, near_front(known, chances, self._costs)
        return self._known[1]


NO_REPLICATES = Replication(0, 1)
