"""How a space is searched, and what that means for the parts of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from vitnas.engine.decide.budget import DEFAULT_TRIALS, Budget
from vitnas.engine.pruning.pareto import (
    CONFIDENCE,
    DEFAULT_PRUNER,
    ParetoPruner,
    PrunerName,
    check_pruner,
    make_pruner,
)
from vitnas.engine.samplers import DEFAULT_SAMPLER, SamplerName
from vitnas.errors import RunError


@dataclass(frozen=True)
class SearchOptions:
    """How a space is searched; not what is searched.

    Attributes:
        trials: trainings to start and end in the run, earlier sessions included; None = 24, or no
            bound where another one is given.
        hours: of wall time, after which this session starts nothing more; what is running then is
            finished.
        gpu_hours: of all trainings of the run, after which nothing more is started.
        trial_minutes: how long a training may take; one that takes longer has the outcome
            `timeout`.
        workers: trainings at a time; None = what the machine or cluster has room for.
        gpus_per_trial: GPUs, or a share of one, for each training; None = 1 where there is CUDA,
            else 0.
        start_from: folders of other runs with the same data and proxy, whose results are taken
            over for the networks that this space holds, too.
        seed_configs: what is trained first: model files, names of the zoo, folders of runs (their
            fronts), or `zoo` for all of the papers' models that the space holds.
        tensorboard: whether curves are logged to `tensorboard/` in the folder.
        replicates: trainings with other seeds for each network that may be on the front, once the
            trials have ended; see `vitnas.engine.decide.replicates`. They are no trials of the run.
        seed: of the run. With one worker the whole study follows from it.
        backend: `tune` (Ray Tune, any number of workers) or `serial` (in this process).
        ray_address: of a running cluster; None starts Ray on this machine.
        sampler: who proposes networks.
        pruner: who stops trials early: `curve`, `front`, `both`, or `none`; see `make_pruner`.
        confidence: that a trial stopped for its learning curve would not have reached the front,
            0.5 to 0.999.
        pruner_bins: into how many bins of like FLOPs the pruner `front` cuts what it ranks.

    Raises:
        ConfigError: there is no such pruner, or an option of it is out of range.
        RunError: the replicates would never begin.
    """

    trials: int | None = None
    hours: float | None = None
    gpu_hours: float | None = None
    trial_minutes: float | None = None
    start_from: Sequence[str | Path] = ()
    seed_configs: Sequence[str] = ()
    tensorboard: bool = False
    workers: int | None = None
    gpus_per_trial: float | None = None
    replicates: int = 0
    seed: int = 0
    backend: Literal["tune", "serial"] = "tune"
    ray_address: str | None = None
    sampler: SamplerName = DEFAULT_SAMPLER
    pruner: PrunerName = DEFAULT_PRUNER
    confidence: float = CONFIDENCE
    pruner_bins: int = 1

    def __post_init__(self) -> None:
        check_pruner(self.pruner, self.confidence, self.pruner_bins)
        if self.replicates < 0:
            raise RunError(f"--replicates {self.replicates}: is a number from 0")
        if self.replicates and self.num_trials is None:
            raise RunError(
                f"--replicates {self.replicates}: start once the trials have ended, which --hours "
                f"and --gpu-hours alone never let happen; add --trials, e.g. {DEFAULT_TRIALS}"
            )

    @property
    def num_trials(self) -> int | None:
        """`trials` with its default filled in; None = no bound."""
        is_bounded = self.hours is not None or self.gpu_hours is not None
        return self.trials or (None if is_bounded else DEFAULT_TRIALS)

    def make_pruner(self, epochs: int, costs: tuple[str, ...]) -> ParetoPruner | None:
        """Who stops trainings of so many epochs early; None = nobody."""
        return make_pruner(self.pruner, epochs, self.confidence, self.pruner_bins, costs)

    def budget(self, gpus: float) -> Budget:
        """What may be spent, where a training holds so many GPUs."""
        return Budget(
            seconds=None if self.hours is None else 3600 * self.hours,
            gpu_seconds=None if self.gpu_hours is None else 3600 * self.gpu_hours,
            gpus=gpus,
        )

    def facts(self) -> dict[str, Any]:
        """What a run keeps of them for each session, as plain values."""
        pruner: dict[str, Any] = {"name": self.pruner}
        if self.pruner in ("curve", "both"):
            pruner["confidence"] = self.confidence
        if self.pruner in ("front", "both"):
            pruner["bins"] = self.pruner_bins
        return {
            "backend": self.backend,
            "sampler": self.sampler,
            "pruner": pruner,
            "hours": self.hours,
            "gpu_hours": self.gpu_hours,
            "replicates": self.replicates or None,
        }
