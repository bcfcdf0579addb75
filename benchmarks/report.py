"""The report of a run of a thousand trials, in a fresh process.

The study is a real `study.db`: a `Controller` is driven over a `RunStore` with the space
`two_stages.yaml`, random proposals and the default pruner. Only the trainings are made up: their
curves come from a formula (`common.made_up_curve`), nothing is trained. The database is
written in memory (/dev/shm) where there is such a place, since its writing is not timed here, and
then copied.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from common import (
    Figures,
    conclude,
    folder_in_memory,
    fresh_process,
    is_quick,
    seconds_of,
    show,
    train_made_up,
    two_stages,
)

from vitnas.engine.decide.controller import Controller
from vitnas.engine.decide.rules import Rules
from vitnas.engine.pruning.pareto import make_pruner
from vitnas.engine.store.study import RunStore, read_run
from vitnas.environment import session_facts

FILES = ("trials.csv", "front.csv", "front.png", "report.md", "report.html")


def write_study(folder: Path, trials: int) -> None:
    """A study of so many made-up trainings, with what a search writes beside them."""
    space = two_stages()
    epochs = space.config.proxy.epochs
    store = RunStore(folder, {"space": space.to_tree(), "seed": 0})
    session = session_facts(backend="serial", workers=1, sampler="random", device="cpu")
    environment = {
        "sessions": [session],
        "seed": 0,
        "data": {"name": "digits", "num_train_images": 1150, "num_val_images": 287},
        "proxy": space.config.proxy.model_dump(mode="json"),
    }
    store.set("environment", environment)
    store.set("num_trials", trials)
    rules = Rules(trials, sampler="random", pruner=make_pruner("both", epochs))
    controller = Controller(store, space, rules)
    train_made_up(controller, diverging=0.01)
    for trial in read_run(folder).front:
        store.describe_ended(trial.number, "test_top1", round((trial.top1 or 0.0) - 0.5, 4))
    store.close()


def main() -> None:
    quick = is_quick(__doc__)
    trials, repeats = (40, 1) if quick else (1000, 5)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        with folder_in_memory() as fast:
            building = seconds_of(lambda: write_study(Path(fast), trials))
            shutil.copytree(fast, folder)
        arguments = ("-m", "vitnas", "report", str(folder))
        first, _ = fresh_process(*arguments)
        again = [fresh_process(*arguments)[0] for _ in range(repeats)]
        sizes = {name: (folder / name).stat().st_size for name in (*FILES, "study.db")}
        configs = len(list((folder / "configs").iterdir()))
        run = read_run(folder)
    ended = sum(trial.outcome.is_trial for trial in run.trials)
    show(
        ("what", "value"),
        [
            ("candidates in study.db", f"{len(run.trials):,}"),
            ("trainings (made up)", f"{ended:,}"),
            ("of these complete", f"{len(run.complete):,}"),
            ("first report, every file new, s", f"{first:.2f}"),
            ("report again, median, s", f"{statistics.median(again):.2f}"),
            ("report again, worst, s", f"{max(again):.2f}"),
            ("making the study, s", f"{building:.0f}"),
            ("report.html, MB", f"{sizes['report.html'] / 1e6:.2f}"),
            ("study.db, MB", f"{sizes['study.db'] / 1e6:.2f}"),
        ],
    )
    figures: Figures = {
        "trials": ended,
        "candidates": len(run.trials),
        "complete": len(run.complete),
        "config_files": configs,
        "first_s": round(first, 2),
        "again_s_median": round(statistics.median(again), 2),
        "again_s_worst": round(max(again), 2),
        "html_mb": round(sizes["report.html"] / 1e6, 2),
        "study_mb": round(sizes["study.db"] / 1e6, 2),
        "trainings": "made up",
    }
    conclude("report", quick, figures, {"first_s": {"max": 5.0}, "again_s_worst": {"max": 5.0}})


if __name__ == "__main__":
    main()
