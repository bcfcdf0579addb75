"""The report of a run of two thousand trials, in a fresh process, and how soon a browser paints it.

The study is a real `study.db`: a `Controller` is driven over a `RunStore` with the space
`two_stages.yaml`, random proposals and the default pruner. Only the trainings are made up: their
curves come from a formula (`common.made_up_curve`), nothing is trained. The database is
written in memory (/dev/shm) where there is such a place, since its writing is not timed here, and
then copied. Where chromium is on PATH, the page is opened headless and says itself when something
was first painted.
"""

from __future__ import annotations

import re
import resource
import shutil
import statistics
import subprocess
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
    # Random draws are fast; the report of another sampler says besides what they would reach.
    session = session_facts(backend="serial", workers=1, sampler="ehvi", device="cpu")
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


WHEN_PAINTED = """<script>
new PerformanceObserver((list) => {
  for (const paint of list.getEntries()) console.log(`${paint.name} at ${paint.startTime} ms`);
}).observe({ type: "paint", buffered: true });
</script>"""


def first_paint(page: Path, folder: Path) -> float | None:
    """Seconds until a new headless chromium paints a part of the page; None where there is none."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return None
    watched = folder / "watched.html"
    watched.write_text(page.read_text().replace("<head>", f"<head>{WHEN_PAINTED}"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    options += [f"--user-data-dir={folder / 'profile'}", f"--screenshot={folder / 'seen.png'}"]
    command = [chromium, *options, watched.resolve().as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    said = re.search(r"first-contentful-paint at ([\d.]+) ms", done.stderr)
    return None if said is None else float(said[1]) / 1000


def cpu_seconds() -> float:
    """What the processes have taken that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    quick = is_quick(__doc__)
    trials, repeats = (40, 1) if quick else (2000, 5)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        with folder_in_memory() as fast:
            building = seconds_of(lambda: write_study(Path(fast), trials))
            shutil.copytree(fast, folder)
        arguments = ("-m", "vitnas", "report", str(folder))
        before = cpu_seconds()
        first, _ = fresh_process(*arguments)
        first_cpu = cpu_seconds() - before
        again = [fresh_process(*arguments)[0] for _ in range(repeats)]
        sizes = {name: (folder / name).stat().st_size for name in (*FILES, "study.db")}
        painted = first_paint(folder / "report.html", Path(temporary))
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
            ("of this on the CPU, s", f"{first_cpu:.2f}"),
            ("report again, median, s", f"{statistics.median(again):.2f}"),
            ("report again, worst, s", f"{max(again):.2f}"),
            ("making the study, s", f"{building:.0f}"),
            ("report.html, MB", f"{sizes['report.html'] / 1e6:.2f}"),
            ("first paint, s", "no chromium" if painted is None else f"{painted:.2f}"),
            ("study.db, MB", f"{sizes['study.db'] / 1e6:.2f}"),
        ],
    )
    figures: Figures = {
        "trials": ended,
        "candidates": len(run.trials),
        "complete": len(run.complete),
        "config_files": configs,
        "first_s": round(first, 2),
        "first_cpu_s": round(first_cpu, 2),
        "again_s_median": round(statistics.median(again), 2),
        "again_s_worst": round(max(again), 2),
        "html_mb": round(sizes["report.html"] / 1e6, 2),
        "study_mb": round(sizes["study.db"] / 1e6, 2),
        "trainings": "made up",
    }
    targets = {"first_s": {"max": 10.0}, "again_s_worst": {"max": 10.0}, "html_mb": {"max": 5.0}}
    if painted is not None:
        figures["first_paint_s"] = round(painted, 2)
        targets["first_paint_s"] = {"max": 2.0}
    conclude("report", quick, figures, targets)


if __name__ == "__main__":
    main()
