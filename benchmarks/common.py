"""What the benchmarks share: fresh processes, made-up trainings, a table, one JSON line at the end.

A benchmark is `python benchmarks/NAME.py [--quick]`. It prints what it does and a table, and as its
last line an object with `benchmark`, `quick`, `figures`, `targets` (bounds on figures, by name),
`met` (whether all bounds hold) and `hardware`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read when torch is imported
    os.environ.setdefault(_name, "1")
os.environ.setdefault("RAY_worker_niceness", "0")  # else trainings give way to all else here

if TYPE_CHECKING:
    from vitnas.config.model import ModelConfig
    from vitnas.config.space import SearchSpace
    from vitnas.engine.decide.controller import Controller

ROOT = Path(__file__).resolve().parents[1]
Figures = Mapping[str, float | str | list[str]]
Bound = Mapping[str, float]
"""`{"min": x}`, `{"max": x}` or both; the bounds themselves are allowed."""


def quick_parser(description: str | None) -> argparse.ArgumentParser:
    """What reads the command line of a benchmark: `--quick`, and what is added to it."""
    first = (description or "").strip().splitlines()[0]
    parser = argparse.ArgumentParser(description=first)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it still run?")
    return parser


def is_quick(description: str | None) -> bool:
    """Read the command line: whether `--quick` was given."""
    return bool(quick_parser(description).parse_args().quick)


def add_replicates(parser: argparse.ArgumentParser) -> None:
    """Add `--replicates`, which is passed to a search."""
    text = "further trainings of what decides the comparison with the baselines"
    parser.add_argument("--replicates", type=int, default=0, help=text)


def ahead_of_baselines(run: Path) -> dict[str, float]:
    """By how much a run's front is ahead of its baselines; empty if it has none to compare."""
    file = run / "comparison.json"
    compared = json.loads(file.read_text()) if file.exists() else None
    if not compared:
        return {}
    names = {"ahead_points": "points", "error": "error", "ahead_share": "share"}
    return {name: compared[key] for name, key in names.items()}


def seconds_of(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def peak_growth(work: Callable[[], object]) -> float:
    """Bytes that this process has in memory at most during `work`, beyond those before. Linux."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    before = _resident("VmRSS")
    work()
    return _resident("VmHWM") - before


def _resident(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(f"{name}:"))
    return 1024.0 * int(kilobytes)


def median_seconds(call: Callable[[], object], repeats: int) -> float:
    """Median wall time of `repeats` calls."""
    return statistics.median(seconds_of(call) for _ in range(repeats))


def fresh_process(
    *arguments: str, expect: int = 0, cwd: Path = ROOT
) -> tuple[float, subprocess.CompletedProcess[str]]:
    """Run this Python on `arguments` in a new process; wall time and what it said.

    Raises:
        SystemExit: it ended with another code than `expect`; with what it said.
    """
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode != expect:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return seconds, done


def folder_in_memory() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder that waits for no disk; on the disk where there is no /dev/shm."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)


def draw_configs(space: SearchSpace, count: int, first_seed: int = 0) -> list[ModelConfig]:
    """The first `count` random draws of `space` that are networks; each object new."""
    from vitnas.config.trials import RandomTrial, Refused

    configs: list[ModelConfig] = []
    seed = first_seed
    while len(configs) < count:
        with contextlib.suppress(Refused):
            configs.append(space.suggest(RandomTrial(seed)))
        seed += 1
    return configs


def digits_space(**proxy: float) -> SearchSpace:
    """The space `digits` with other fields of its short training."""
    from vitnas.config.space import load_space

    space = load_space("digits")
    return space.with_proxy(space.config.proxy.model_copy(update=proxy))


def two_stages() -> SearchSpace:
    """A large space of small networks, for trials that are made up and not trained."""
    from vitnas.config.space import load_space

    return load_space(str(ROOT / "benchmarks/two_stages.yaml"))


def made_up_curve(config: ModelConfig, flops: int, epochs: int) -> list[float]:
    """Top-1 after each epoch as a training on digits might give it; no training is done.

    Rises with FLOPs and with attention late in the network, saturates over the epochs, scatters by
    the network's key, and comes in steps of one of 287 scoring images.
    """
    draw = random.Random(config.key)
    mixers = [stage.token_mixer for stage in config.stages]
    final = 98.5 - 9.0 * (flops / 1e5) ** -0.5 + draw.gauss(0, 0.6)
    final += 0.4 * (mixers[-1] == "mhsa") + 0.4 * (mixers[0] == "dwconv")
    final, rate = min(max(final, 15.0), 99.6), draw.uniform(0.35, 0.6)
    curve = (final - (final - 10.0) * math.exp(-rate * epoch) for epoch in range(1, epochs + 1))
    return [round(top1 * 2.87) / 2.87 for top1 in curve]


def train_made_up(controller: Controller, diverging: float = 0.0) -> None:
    """Drive `controller` to its end with made-up trainings; a share of them diverges."""
    from vitnas.engine.decide.job import Decision
    from vitnas.records import Outcome

    while (job := controller.next()) is not None:
        flops = controller.trials[job.number].flops
        curve = made_up_curve(job.config, flops, controller.epochs)
        seconds = 0.2 + flops / 4e5
        if random.Random(job.seed).random() < diverging:
            error = "Diverged: loss in epoch 1 is nan"
            controller.fail(job.number, Outcome.DIVERGED, error, seconds=seconds, device="cpu")
            continue
        for epoch, top1 in enumerate(curve, start=1):
            if controller.report(job.number, epoch, top1) is Decision.STOP:
                break
        controller.finish(job.number, seconds=seconds * epoch / len(curve), device="cpu")


def show(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: the first column to the left, numbers to the right."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip(), flush=True)


def conclude(name: str, quick: bool, figures: Figures, targets: Mapping[str, Bound]) -> None:
    """Print every target with its figure, and the JSON object."""
    from vitnas.environment import hardware

    print()
    met = True
    for figure, bound in targets.items():
        value = figures[figure]
        assert isinstance(value, (int, float))
        within = bound.get("min", -math.inf) <= value <= bound.get("max", math.inf)
        met = met and within
        wanted = " and ".join(f"{side} {limit:g}" for side, limit in bound.items())
        print(f"{'met' if within else 'MISSED'}: {figure} {value:g}, target {wanted}")
    facts = {**hardware(), "load": round(os.getloadavg()[0], 2)}
    result = {
        "benchmark": name,
        "quick": quick,
        "figures": figures,
        "targets": targets,
        "met": met,
        "hardware": facts,
    }
    print(json.dumps(result), flush=True)


def rounded(value: float, digits: int = 3) -> float:
    """`value` with so many significant digits."""
    return float(f"{value:.{digits}g}")
