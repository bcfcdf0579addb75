"""What a search costs beside its trainings: a trial through Ray Tune, a proposal, the memory.

Real engine, trivial trainings: the driver, Ray with its workers, controller, default sampler and
study.db on this disk are those of a search; a worker looks its accuracies up (made-up curves) and
sends weights of the network's size after the last epoch, all without waiting. Workers are
then about as fast as the driver, and the time from one end to the next is all overhead. Times count
from the end of the tenth trial, when all workers run. Each is measured several times in fresh
processes; the best and the median are given, since the machine may do other things (for which Ray's
workers would make way and do not here), and beside them the processor time of the driver alone.
Trainings of 1 and of 10 epochs tell what an epoch costs. Proposals are those of sampler.py, fronts
those of pareto.py.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pareto
import sampler
from common import conclude, digits_space, fresh_process, is_quick, made_up_curve, show

from vitnas.cost.closed_form import closed_form
from vitnas.engine.backends.worker import Worker
from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.job import EpochDone, Job, Message
from vitnas.engine.decide.rules import Rules
from vitnas.engine.decide.steering import Steering
from vitnas.engine.pruning import DEFAULT_PRUNER
from vitnas.engine.pruning.pareto import make_pruner
from vitnas.engine.store.study import RunStore
from vitnas.engine.store.weights import KeptWeights
from vitnas.records import TrialRecord

EPOCHS = 10
WARM_UP = 10
WORKERS = 2


@dataclass(frozen=True)
class Lookup(Worker):
    """Says at once what a training would have said in the end."""

    def settle(self) -> Lookup:
        return self

    def run(self, job: Job) -> Iterator[Message]:
        cost = closed_form(job.config)
        for epoch, top1 in enumerate(
            made_up_curve(job.config, cost.flops, self.proxy.epochs), start=1
        ):
            weights = bytes(4 * cost.num_params) if epoch == self.proxy.epochs else None
            yield EpochDone(epoch, top1, 0.01 * epoch, "cpu", weights)


def drive(folder: Path, trials: int, epochs: int, workers: int, prune: bool) -> None:
    """One search in this process; prints how things stood at the end of every trial: wall and
    processor seconds, and the most memory so far in bytes."""
    import ray

    from vitnas.engine.backends.parallel import RayBackend

    class Backend(RayBackend):
        def give(self, worker: Worker) -> None:
            self._worker = ray.put(worker)

    ends: list[tuple[float, float, float]] = []

    def listen(event: str, trial: TrialRecord) -> None:
        if event == "end" and trial.outcome.is_trial:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            ends.append((time.perf_counter(), time.process_time(), peak))

    space = digits_space(epochs=epochs)
    backend = Backend(workers, 0.0, None)
    try:
        backend.give(Lookup(space.config.proxy, {}, "cpu"))
        store = RunStore(folder, {"space": space.to_tree(), "seed": 0})
        pruner = make_pruner(DEFAULT_PRUNER, epochs) if prune else None
        controller = Controller(store, space, Rules(trials, pruner=pruner), listener=listen)
        backend.train(Steering(controller, KeptWeights(folder)), folder / ".tune")
        assert controller.num_ended == trials
        store.close()
    finally:
        backend.close()
    print(json.dumps(ends))


@dataclass(frozen=True)
class Measured:
    """What a search took.

    Attributes:
        ends: wall and processor seconds of the driver when each trial had ended, and its most
            memory until then in bytes.
    """

    ends: list[tuple[float, float, float]]

    @property
    def peak_mb(self) -> float:
        return self.ends[-1][2] / 1e6

    def ms_per_trial(self, first: int = WARM_UP) -> float:
        """Mean wall time between the ends of two trials."""
        return self._per_trial(0, first)

    def cpu_ms_per_trial(self, first: int = WARM_UP) -> float:
        """The same of the driver's processor time."""
        return self._per_trial(1, first)

    def _per_trial(self, clock: int, first: int) -> float:
        times = [end[clock] for end in self.ends[first:]]
        return 1e3 * (times[-1] - times[0]) / (len(times) - 1)


def measure(
    trials: int, *, epochs: int = EPOCHS, workers: int = WORKERS, prune: bool = False
) -> Measured:
    """One search in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        asked = (folder, trials, epochs, workers, int(prune))
        _, done = fresh_process(__file__, "--drive", *map(str, asked))
    return Measured(json.loads(done.stdout.splitlines()[-1]))


def driver_costs(whole: Iterable[Measured], short: Iterable[Measured]) -> dict[str, float]:
    """Processor milliseconds (medians) of the driver for an epoch, and for a trial beside its
    epochs, from trainings of `EPOCHS` and of one."""
    longer, shorter = (
        statistics.median(run.cpu_ms_per_trial() for run in runs) for runs in (whole, short)
    )
    epoch = (longer - shorter) / (EPOCHS - 1)
    return {"driver_epoch_ms": round(epoch, 2), "driver_trial_ms": round(shorter - epoch, 1)}


def tune_figures(trials: int, repeats: int) -> dict[str, float]:
    runs = {
        epochs: [measure(trials, epochs=epochs) for _ in range(repeats)] for epochs in (1, EPOCHS)
    }
    figures, rows = {}, []
    for epochs, each in runs.items():
        times = [run.ms_per_trial() for run in each]
        cpu = statistics.median(run.cpu_ms_per_trial() for run in each)
        figures[f"trial_ms_{epochs}_epochs_best"] = round(min(times), 1)
        figures[f"trial_ms_{epochs}_epochs_median"] = round(statistics.median(times), 1)
        figures[f"driver_cpu_ms_{epochs}_epochs"] = round(cpu, 1)
        rows.append((f"{epochs} epochs", *(f"{t:.1f}" for t in sorted(times)), f"{cpu:.1f}"))
    heads = ["ms"] * repeats
    show((f"a trial, {WORKERS} workers, {trials} trials", *heads, "driver's CPU, ms"), rows)
    return figures | driver_costs(runs[EPOCHS], runs[1])


def long_run_figures(trials: int) -> dict[str, float]:
    """A long search with early stopping: the driver's memory, and whether it slows down."""
    run = measure(trials, prune=True)
    last = len(run.ends) - max(2, len(run.ends) // 10)
    figures = {
        "long_run_trials": trials,
        "long_run_driver_mb": round(run.peak_mb),
        "long_run_ms_per_trial": round(run.ms_per_trial(), 1),
        "long_run_ms_per_trial_last_tenth": round(run.ms_per_trial(last), 1),
        "long_run_driver_cpu_ms": round(run.cpu_ms_per_trial(), 1),
        "long_run_driver_cpu_ms_last_tenth": round(run.cpu_ms_per_trial(last), 1),
    }
    show(("a long search", "value"), [(name, f"{value:g}") for name, value in figures.items()])
    return figures


def proposal_figures(trials: int, proposals: int, repeats: int) -> dict[str, float]:
    """Milliseconds of a proposal by the default sampler when so many trials have ended."""
    runs = [sampler.proposal_times(trials, proposals) for _ in range(repeats)]
    wall, busy = (
        [1e3 * statistics.median(times[1:]) for times in clock] for clock in zip(*runs, strict=True)
    )
    figures = {
        "proposal_after_trials": trials,
        "proposal_ms_best": round(min(wall), 1),
        "proposal_ms_median": round(statistics.median(wall), 1),
        "proposal_cpu_ms": round(statistics.median(busy), 1),
    }
    show(("proposals", "value"), [(name, f"{value:g}") for name, value in figures.items()])
    return figures


def main() -> None:
    quick = is_quick(__doc__)
    figures = tune_figures(*((20, 1) if quick else (150, 3)))
    figures |= proposal_figures(*((60, 4, 1) if quick else (1000, 60, 3)))
    figures |= pareto.front_figures(*((1_000, 3) if quick else (10_000, 21)))
    figures |= long_run_figures(30 if quick else 5000)
    targets: Mapping[str, Mapping[str, float]] = {
        f"trial_ms_{EPOCHS}_epochs_median": {"max": 120.0},
        "proposal_ms_median": {"max": 30.0},
        "long_run_driver_mb": {"max": 600.0},
        "front_and_hypervolume_ms": {"max": 50.0},
    }
    conclude("overhead", quick, figures, targets)


def arguments() -> Callable[[], None]:
    """`--drive` is what the benchmark starts itself; all else is its own command line."""
    if "--drive" not in sys.argv:
        return main
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--drive", nargs=5, metavar=("FOLDER", "TRIALS", "EPOCHS", "WORKERS", "PRUNE")
    )
    folder, *numbers = parser.parse_args().drive
    trials, epochs, workers, prune = map(int, numbers)
    return lambda: drive(Path(folder), trials, epochs, workers, bool(prune))


if __name__ == "__main__":
    arguments()()
