"""What another run found of a network, as a trial of this one."""

from __future__ import annotations

from collections.abc import Iterable

from vitnas.config.objectives import Limits
from vitnas.cost.limits import over_limits
from vitnas.engine.decide.ledger import Ledger
from vitnas.engine.decide.locate import Candidate
from vitnas.records import Outcome, TrialRecord


def take_over(
    ledger: Ledger,
    limits: Limits,
    candidate: Candidate,
    earlier: TrialRecord,
    replicates: Iterable[TrialRecord],
) -> int | None:
    """Enter a trial of another run with those of its replicates that are not here yet.

    Each is in the study whole or not at all. A driver may be killed between them, and the other run
    may make more of them: a later session enters the rest.

    Args:
        ledger: where to.
        limits: of this space.
        candidate: the network.
        earlier: the other run's trial.
        replicates: that trial's.

    Returns:
        Its number here; None where the network is known from elsewhere or is over a limit.
    """
    number = ledger.number_of(candidate.key)
    if number is not None and not _is_same(ledger[number], earlier):
        return None
    if number is None:
        number = None if over_limits(earlier, limits) else _enter(ledger, candidate, earlier)
        if number is None:
            return None
        ledger.own(number)
    made = {trial.seed for trial in ledger.trials if trial.replicate_of == number}
    for replicate in replicates:
        if replicate.seed not in made:
            _enter(ledger, candidate, replicate, number)
    return number


def _is_same(here: TrialRecord, earlier: TrialRecord) -> bool:
    """Whether an earlier session has taken over this very training."""
    return here.taken and here.seed == earlier.seed


def _enter(
    ledger: Ledger, candidate: Candidate, earlier: TrialRecord, replicate_of: int | None = None
) -> int | None:
    trial = ledger.enter(candidate, earlier.seed, True, replicate_of)
    if trial.outcome is not Outcome.RUNNING:
        return None
    ledger.curve(trial.number, earlier.curve)
    ledger.copy_measured(trial.number, earlier)
    result = {"seconds": earlier.seconds, "device": earlier.device, "error": earlier.error}
    if earlier.float_top1 is not None:
        result["float_top1"] = earlier.float_top1
    ledger.end(trial.number, earlier.outcome, event="known", **result)
    return trial.number
