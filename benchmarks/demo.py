"""The demo, and what Ray costs: real trainings on scikit-learn's digits.

First `search.py` as a newcomer runs it (Ray Tune, a worker a core) into a new folder, then the same
with the serial back end, for epochs a second. With `--replicates 2` both train what decides the
comparison with the baselines twice more. Then trainings so small that the engine shows: the
same networks, serial and with one Ray worker, for one epoch and for five. What passes between the
end of a trial and the end of the next, less what the trial itself took, is the engine's; Ray's
share is what it has more of that than the serial back end, which writes the same study, here in
memory, for a disk takes a different time each time. With two workers only the time a trial is told.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from common import (
    ROOT,
    Figures,
    add_replicates,
    ahead_of_baselines,
    conclude,
    folder_in_memory,
    fresh_process,
    quick_parser,
    show,
)

from vitnas.config.files import validate
from vitnas.config.space import SearchSpace, SpaceConfig
from vitnas.engine.options import SearchOptions
from vitnas.engine.search import run_search
from vitnas.engine.store.study import read_run
from vitnas.engine.watch.watcher import Watcher
from vitnas.records import TrialRecord

TRIVIAL: dict[str, Any] = {
    "name": "trivial",
    "data": {"name": "digits"},
    "model": {
        "img_size": 8,
        "in_chans": 1,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2},
        "stages": [
            {
                "token_mixer": {"choice": ["pool", "dwconv"]},
                "depth": {"int": [1, 3]},
                "embed_dim": {"choice": list(range(8, 72, 8))},
                "kernel_size": 3,
                "mlp_ratio": {"choice": [1.0, 1.5, 2.0]},
            }
        ],
    },
}

Backend = Literal["serial", "tune"]
PLANS: tuple[tuple[Backend, int, int], ...] = (
    ("serial", 1, 1),
    ("tune", 1, 1),
    ("tune", 2, 1),
    ("serial", 1, 5),
    ("tune", 1, 5),
)
"""Back end, workers, epochs."""


def demo(folder: Path, trials: int, *more: str) -> dict[str, float]:
    """Run the demo in a new process; what it reached and how fast."""
    command = (str(ROOT / "search.py"), "digits", "--out", str(folder), "--trials", str(trials))
    os.environ["XDG_CACHE_HOME"] = f"{folder}.cache"  # else baselines of an earlier run are taken
    seconds, _ = fresh_process(*command, *more)
    run = read_run(folder)
    members = run.front
    epochs = sum(trial.epochs for trial in (*run.trials, *run.replicates))
    assert (folder / "report.html").is_file()
    return {
        "seconds": round(seconds, 1),
        "epochs": epochs,
        "epochs_per_s": round(epochs / seconds, 2),
        "complete": len(run.complete),
        "front_members": len(members),
        "best_scoring_top1": round(max(trial.top1 or 0.0 for trial in members), 2),
        "best_test_top1": round(max(trial.mean_test_top1 or 0.0 for trial in members), 2),
        "front_flops_span": round(members[-1].flops / members[0].flops, 1),
        **ahead_of_baselines(folder),
    }


@dataclass(frozen=True)
class Pace:
    """How a search over trivial trainings went, in seconds.

    Attributes:
        start: until the first training had ended.
        each: a trial, mean over all but the first.
        between: of each trial but the first, what the engine took and the training did not; with
            one worker.
        trained: what each training took, waiting for the engine's answers included.
    """

    start: float
    each: float
    between: list[float]
    trained: list[float]


def pace(backend: Backend, workers: int, epochs: int, trials: int) -> Pace:
    """Search a space of tiny networks, on a twentieth of the images."""
    proxy = {"epochs": epochs, "batch_size": 64, "train_fraction": 0.05}
    space = SearchSpace(validate(SpaceConfig, TRIVIAL | {"proxy": proxy}))
    options = SearchOptions(
        trials=trials,
        workers=workers,
        gpus_per_trial=0.0,
        backend=backend,
        sampler="random",
        pruner="none",
        baselines=False,
    )
    ends: list[float] = []
    trained: list[float] = []

    def listen(event: str, trial: TrialRecord) -> None:
        if event == "end" and trial.outcome.is_trial:
            ends.append(time.perf_counter())
            trained.append(trial.seconds or 0.0)

    with folder_in_memory() as folder:
        started = time.perf_counter()
        run_search(space, Path(folder) / "run", options, Watcher(listener=listen))
    gaps = [after - before for before, after in pairwise(ends)]
    between = [gap - seconds for gap, seconds in zip(gaps, trained[1:], strict=True)]
    return Pace(ends[0] - started, statistics.mean(gaps), between, trained)


def ray_figures(trials: int) -> dict[str, float]:
    """Ray's share of a trial, of an epoch, and of the start."""
    pace("serial", 1, 1, 2)  # imports
    found = {plan: pace(*plan, trials) for plan in PLANS}
    rows = []
    for (backend, workers, epochs), went in found.items():
        between = f"{1e3 * statistics.median(went.between):.0f}" if workers == 1 else "-"
        rows.append(
            (
                f"{backend}, {workers} worker(s), {epochs} epoch(s)",
                f"{1e3 * went.each:.0f}",
                f"{1e3 * statistics.median(went.trained):.0f}",
                between,
                f"{went.start:.1f}",
            )
        )
    show(("trivial trainings", "ms a trial", "training", "engine", "first ended after, s"), rows)
    serial, tune = found["serial", 1, 1], found["tune", 1, 1]
    engines = statistics.median(serial.between), statistics.median(tune.between)
    longer = [
        (five_tune - five_serial) - (one_tune - one_serial)
        for five_tune, five_serial, one_tune, one_serial in zip(
            found["tune", 1, 5].trained,
            found["serial", 1, 5].trained,
            tune.trained,
            serial.trained,
            strict=True,
        )
    ]
    return {
        "trivial_trials": trials,
        "serial_engine_ms_per_trial": round(1e3 * engines[0], 1),
        "tune_engine_ms_per_trial": round(1e3 * engines[1], 1),
        "ray_ms_per_trial": round(1e3 * (engines[1] - engines[0]), 1),
        "ray_ms_per_further_epoch": round(1e3 * statistics.median(longer) / 4, 1),
        "ray_start_s": round(tune.start - serial.start, 1),
        "serial_ms_per_trivial_trial": round(1e3 * serial.each, 1),
        "tune_two_workers_ms_per_trivial_trial": round(1e3 * found["tune", 2, 1].each, 1),
    }


def main() -> None:
    parser = quick_parser(__doc__)
    add_replicates(parser)
    asked = parser.parse_args()
    quick = bool(asked.quick)
    trials = 6 if quick else 24
    with tempfile.TemporaryDirectory() as folder:
        more = ("--replicates", str(asked.replicates), *(("--no-baselines",) if quick else ()))
        found = demo(Path(folder) / "tune", trials, *more)
        serial = demo(Path(folder) / "serial", trials, "--backend", "serial", *more)
    rows = [(name.replace("_", " "), f"{found[name]:g}", f"{serial[name]:g}") for name in found]
    show((f"search.py, {trials} trials", "tune", "serial"), rows)
    figures: Figures = {
        "trials": trials,
        **found,
        "serial_seconds": serial["seconds"],
        "serial_epochs_per_s": serial["epochs_per_s"],
        "tune_over_serial_epochs_per_s": round(found["epochs_per_s"] / serial["epochs_per_s"], 2),
        **ray_figures(6 if quick else 30),
    }
    targets = {
        "seconds": {"max": 180.0},
        "best_scoring_top1": {"min": 97.0},
        "best_test_top1": {"min": 97.0},
        "front_flops_span": {"min": 4.0},
    }
    conclude("demo", quick, figures, targets)


if __name__ == "__main__":
    main()
