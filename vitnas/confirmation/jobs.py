"""What is trained to confirm a front: its networks, and the best baselines of like FLOPs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vitnas.calibration.options import TIMES
from vitnas.config.baseline import Baseline
from vitnas.config.notation import human
from vitnas.confirmation.options import ConfirmOptions
from vitnas.errors import ConfigError, RunError
from vitnas.exported.choose import choose_trial
from vitnas.longer import PROXY
from vitnas.records import TrainingRecord, TrialRecord
from vitnas.report.long_against import best_families
from vitnas.run import Run
from vitnas.trained_long import baseline_of, rate_of

FOLDER = "long"
"""In the run's folder; each network that is trained is a folder in it."""


@dataclass(frozen=True)
class LongJob:
    """A long training.

    Attributes:
        trial: number of the trial; None for a baseline.
        baseline: its name, as `vgg-17`; empty for a trial.
        lr: peak learning rate; None = that of the trials.
        epochs: of the training.
        seed: of the training.
        seconds: about how long it takes; 0 where that is not known.
    """

    trial: int | None
    baseline: str
    lr: float | None
    epochs: int
    seed: int
    seconds: float

    @property
    def called(self) -> str:
        """`trial 7`, `trial 7 at lr 0.016`, or the same of `vgg-17`."""
        name = f"trial {self.trial}" if self.trial is not None else self.baseline
        return name if self.lr is None else f"{name} at lr {self.lr:g}"

    def folder(self, run: Path) -> Path:
        """Where its network goes."""
        name = self.called.replace(" ", "-")
        return run / FOLDER / f"{name}-epochs-{self.epochs}-seed-{self.seed}"

    def is_done(self, run: Run) -> bool:
        """Whether the run has this training, by its own recipe, in `long` or elsewhere."""
        rate = None if self.lr == run.lr else self.lr
        wanted = (self.trial, self.baseline, rate, self.epochs, self.seed, PROXY, "")
        folder = self.folder(run.path)
        is_cut = folder.with_name(f"{folder.name}.training").exists() and not folder.exists()
        return not is_cut and any(
            (one.trial, one.baseline, one.lr, one.epochs, one.seed, one.recipe, one.weights)
            == wanted
            for one in run.long.trainings
        )


def jobs_of(run: Run, options: ConfirmOptions) -> tuple[tuple[LongJob, ...], tuple[str, ...]]:
    """All long trainings of a confirmation, the longest first.

    Against each network stand the families of baselines that are the best at its FLOPs by the run's
    short trainings, at the width of the nearest FLOPs. Neither the best family nor the best rate of
    short trainings need be that of long ones. So there are several families, and each is trained at
    its own rate and at that of the trials. The network is trained at that of the trials, too, and
    at the first other one that a baseline against it has: the same number of rates for each. The
    report takes the best of both sides by the scoring images.

    Args:
        run: with complete trials.
        options: what is asked for.

    Returns:
        The trainings, each once; and a line for each trial without a baseline of like FLOPs.

    Raises:
        RunError: no trial is complete, or there is no such trial.
    """
    chosen = _chosen(run, options)
    if not chosen:
        raise RunError(f"{run.path}: no trial is complete yet, so there is no front to confirm")
    epochs = options.epochs or TIMES * max(1, run.epochs)
    found, lines = dict[tuple[int | None, str, float | None], float](), []
    for trial in chosen:
        rivals = list(_rivals(run, trial, options.families))
        others = [lr for one in rivals for lr in _rates(run, one) if lr not in (None, run.lr)]
        for lr in (None, *others[:1]):
            found[trial.number, "", lr] = _seconds([trial], trial.flops, epochs)
        if not rivals:
            size = human(trial.flops)
            lines.append(f"trial {trial.number} stands alone: no baseline has about {size} FLOPs")
        for baseline in rivals:
            known = [one for one in run.baselines if one.family == baseline.family]
            seconds = _seconds(known or [trial], trial.flops, epochs)
            for lr in _rates(run, baseline):
                found[None, baseline.name, lr] = seconds
    jobs = [
        LongJob(*what, epochs, seed, seconds)
        for what, seconds in found.items()
        for seed in range(options.seeds)
    ]
    return tuple(sorted(jobs, key=lambda job: -job.seconds)), tuple(lines)


def _chosen(run: Run, options: ConfirmOptions) -> Sequence[TrialRecord]:
    if not options.trial:
        return run.spread(options.networks)
    return [choose_trial(run, trial=number) for number in dict.fromkeys(options.trial)]


def _rivals(run: Run, trial: TrialRecord, number: int) -> Iterator[Baseline]:
    for family in best_families(run, trial.flops)[:number]:
        with suppress(ConfigError):  # the family has no width of like FLOPs
            baseline = baseline_of(run, trial.number, family)
            assert isinstance(baseline, Baseline)
            yield baseline


def _rates(run: Run, baseline: Baseline) -> Iterable[float | None]:
    """The rates that a baseline is trained at: that of the trials, and its own."""
    return [None] if run.lr is None else dict.fromkeys((run.lr, rate_of(run, baseline, run.lr)))


def _seconds(known: Sequence[TrainingRecord], flops: int, epochs: int) -> float:
    """By the training of the nearest FLOPs; 0 where its time is not known."""
    near = min(known, key=lambda one: abs(one.flops - flops))
    return (near.seconds or 0.0) / max(1, len(near.curve)) * epochs
