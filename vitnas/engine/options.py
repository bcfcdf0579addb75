"""The options of a search, declared once: type, default, range and help.

The command line, `vitnas.search(**options)` and the docstring below are made from this
declaration. The module stays light: `vitnas --help` reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vitnas.config.notation import parse_size
from vitnas.engine.decide.budget import DEFAULT_TRIALS, Budget
from vitnas.engine.declare import BackendOptions, Option
from vitnas.engine.pruning import CONFIDENCE, DEFAULT_PRUNER, PrunerName
from vitnas.engine.samplers import DEFAULT_SAMPLER, SAMPLERS, SamplerName, check_sampler
from vitnas.errors import RunError

if TYPE_CHECKING:
    from vitnas.engine.decide.replicates import Replication
    from vitnas.engine.pruning.pareto import ParetoPruner

_MANY = 10_000


@dataclass(frozen=True)
class SearchOptions(BackendOptions):
    """How a space is searched; not what is searched.

    Raises:
        ConfigError: a value has the wrong type or is out of range; names the nearest valid one.
        RunError: the replicates would never start.
    """

    trials: Annotated[
        int | None,
        Option(
            "Trainings that the run shall have, those of earlier sessions included; default "
            f"{DEFAULT_TRIALS}, or no bound with --hours or --gpu-hours.",
            1,
            1_000_000,
        ),
    ] = None
    hours: Annotated[
        float | None,
        Option("Start no training after this many hours; running ones are finished.", 0, 1e6),
    ] = None
    gpu_hours: Annotated[
        float | None,
        Option("Start no training once the run's trainings have used this many GPU hours.", 0, 1e9),
    ] = None
    trial_minutes: Annotated[
        float | None,
        Option("End a training that takes longer; its outcome is `timeout`.", 0, 1e6),
    ] = None
    epochs: Annotated[
        int | None, Option("Epochs of each training; default the space's own.", 1, 10_000)
    ] = None
    lr: Annotated[
        float | None,
        Option(
            "Peak learning rate of each training; nothing is tuned then. Default the space's own, "
            "or what tuning finds.",
            1e-6,
            1,
        ),
    ] = None
    tune: Annotated[
        bool,
        Option(
            "On images that no recipe is known for (all but digits and fashion_mnist), "
            "find the recipe of the short training first, in a quarter as many trainings, 12 to 60."
        ),
    ] = True
    start_from: Annotated[
        Sequence[str | Path],
        Option("Take over the results of this run, which has the same data and proxy; repeatable."),
    ] = ()
    seed_configs: Annotated[
        Sequence[str],
        Option(
            "Train first: own (the space file's seed_configs, a third of the trials at most), a "
            "model file, plain (eight networks that are alike in all stages), zoo, a model of it, "
            "or a run's front; none for nothing; repeatable."
        ),
    ] = ("own",)
    tensorboard: Annotated[bool, Option("Log curves to tensorboard/ in the folder.")] = False
    replicates: Annotated[
        int,
        Option(
            "Once the trials have ended, train what may be on the front again, with this many "
            "other seeds; and the baselines that it is compared with.",
            0,
            1000,
        ),
    ] = 0
    replicate_all: Annotated[
        bool,
        Option(
            "Make the replicates of every network that reached its end, and not only of what may "
            "be on the front."
        ),
    ] = False
    baselines: Annotated[
        bool,
        Option(
            "Train reference networks of the space's FLOPs after the trials, too: a plain CNN and "
            "others, on the same images in the same way, each family at its own learning rate."
        ),
    ] = True
    keep_weights: Annotated[
        str | None,
        Option(
            "Keep the weights of all complete networks up to this size, e.g. 500MB: those that may "
            "be on the front, then the newest; default as in this run's last session, in a new run "
            "only those that may be on the front."
        ),
    ] = None
    seed: Annotated[
        int,
        Option(
            "Seed of the run. With one worker, and in one session, the study follows from it.",
            0,
            2**63 - 1,
        ),
    ] = 0
    sampler: Annotated[
        SamplerName,
        Option(
            "What proposes networks: "
            + "; ".join(f"{name} ({kind.text})" for name, kind in SAMPLERS.items())
            + "; or another package's."
        ),
    ] = DEFAULT_SAMPLER
    pruner: Annotated[
        PrunerName, Option("What stops trials early: curve, front, both or none.")
    ] = DEFAULT_PRUNER
    confidence: Annotated[
        float,
        Option(
            "Of the pruner curve: probability that a stopped trial would not reach the front.",
            0.5,
            0.999,
        ),
    ] = CONFIDENCE
    pruner_bins: Annotated[
        int,
        Option(
            "Of the pruner front: number of bins of similar FLOPs in which trials are ranked.",
            1,
            1000,
        ),
    ] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.replicates and self.num_trials is None:
            raise RunError(
                f"--replicates {self.replicates}: start once the trials have ended, which --hours "
                f"and --gpu-hours alone never let happen; add --trials, e.g. {DEFAULT_TRIALS}"
            )
        if self.replicate_all and not self.replicates:
            raise RunError("--replicate-all: the number is missing; add e.g. --replicates 2")

    @staticmethod
    def check_more(values: Mapping[str, Any]) -> None:
        if "sampler" in values:
            check_sampler(values["sampler"])
        if values.get("keep_weights") is not None:
            parse_size(values["keep_weights"], "keep_weights")

    @property
    def num_trials(self) -> int | None:
        """`trials` with its default filled in; None = no bound."""
        is_bounded = self.hours is not None or self.gpu_hours is not None
        return self.trials or (None if is_bounded else DEFAULT_TRIALS)

    @property
    def most_baselines(self) -> int:
        """How many baselines are trained at most: a third as many as trials, at least 4."""
        if not self.baselines:
            return 0
        return _MANY if self.num_trials is None else max(4, self.num_trials // 3)

    @property
    def kept_bytes(self) -> int:
        """Up to which size weights are kept that are not the front's."""
        return parse_size(self.keep_weights, "keep_weights") if self.keep_weights else 0

    def make_pruner(self, epochs: int, costs: tuple[str, ...]) -> ParetoPruner | None:
        """What stops trainings of `epochs` epochs early; None = nothing."""
        from vitnas.engine.pruning.pareto import make_pruner

        return make_pruner(self.pruner, epochs, self.confidence, self.pruner_bins, costs)

    def replication(self, num_images: int, costs: Sequence[str]) -> Replication:
        """What is trained again, where so many images score."""
        from vitnas.engine.decide.replicates import Replication

        return Replication(self.replicates, num_images, costs, self.replicate_all)

    def budget(self, gpus: float) -> Budget:
        """What may be spent, where a training holds `gpus` GPUs."""
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
            "keep_weights": self.keep_weights,
        }
