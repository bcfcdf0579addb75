"""The rules of a controller's decisions."""

from __future__ import annotations

from dataclasses import dataclass

from vitnas.engine.decide.budget import NO_BOUNDS, Budget
from vitnas.engine.decide.replicates import NO_REPLICATES, Replication
from vitnas.engine.pruning.pareto import ParetoPruner
from vitnas.engine.samplers import DEFAULT_SAMPLER, SamplerFactory, SamplerName, make_sampler


@dataclass(frozen=True)
class Rules:
    """How many networks are trained, what proposes them, and what ends a training or the run.

    Attributes:
        num_trials: number of trainings, with those of earlier sessions.
        seed: the run's seed. A trial's own seed comes from it and the network's key.
        sampler: name of the sampler, which proposes networks.
        samplers: makes samplers by their names.
        pruner: stops trials early; None = no trial is stopped.
        budget: limits on wall time and GPU time.
        replication: which networks are trained again after the trials have ended.
    """

    num_trials: int
    seed: int = 0
    sampler: SamplerName = DEFAULT_SAMPLER
    samplers: SamplerFactory = make_sampler
    pruner: ParetoPruner | None = None
    budget: Budget = NO_BOUNDS
    replication: Replication = NO_REPLICATES
