"""How long the command line takes to answer, and a worker to its first step.

Wall times of fresh processes, Python's own start included: help, and a mistake in a space file; for
comparison, what a process pays that imports torch, Ray and Optuna, as each command would if the
imports were not put off.

Processor time and memory that is no other process's, of fresh processes: `import torch`, and all of
a worker from its imports to the first step of a training; for comparison, with what other packages
import besides (timm, which imports torchvision, which imports PyTorch's compiler).
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from common import Bound, Figures, conclude, fresh_process, is_quick, show

HEAVY = ("torch", "ray", "optuna", "timm", "fvcore", "sklearn", "matplotlib", "plotly", "numpy")
LOADED = """
import sys
from vitnas.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("LOADED", *sys.modules)
"""
FIRST_STEP = """
import torch
from vitnas.config.space import load_space
from vitnas.nn.model import build_model
from vitnas.training.optim import make_optimizer
config = load_space("fashion_32").example
model = build_model(config)
optimizer = make_optimizer(model, 1e-3, 0.1, "muon")
model(torch.zeros(8, config.in_chans, *config.image_hw)).sum().backward()
optimizer.step()
"""
STARTS = {
    "import torch": "import torch",
    "a worker's first step": FIRST_STEP,
    "the same, and timm": FIRST_STEP + "import timm",
}
SPENT = """
import json, sys, time
lines = open("/proc/self/smaps_rollup").read().splitlines()
own = sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
slow = [name for name in ("torch._dynamo", "torchvision", "timm") if name in sys.modules]
print(json.dumps({"cpu": time.process_time(), "mb": own / 1024, "slow": slow}))
"""
MISTAKE = """
name: mistake
data: {name: digits}
model:
  img_size: 8
  in_chans: 1
  num_classes: 10
  stages: [{token_mixer: mhsa, depht: 2, embed_dim: 32}]
"""


def heavy_modules(*command: str) -> list[str]:
    """Which of the heavy modules a command has loaded when it ends."""
    _, done = fresh_process("-c", LOADED, *command)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    return [name for name in HEAVY if name in loaded]


def spent(code: str, repeats: int) -> dict[str, Any]:
    """Median CPU seconds and MB of processes that run `code`, and what the last one loaded."""
    told = [json.loads(fresh_process("-c", code + SPENT)[1].stdout) for _ in range(repeats)]
    medians = {name: statistics.median(one[name] for one in told) for name in ("cpu", "mb")}
    return {**medians, "slow": told[-1]["slow"]}


def main() -> None:
    quick = is_quick(__doc__)
    repeats = 2 if quick else 15
    with tempfile.TemporaryDirectory() as folder:
        bad = Path(folder) / "bad.yaml"
        bad.write_text(MISTAKE)
        commands = {"help": (["--help"], 0), "error": (["space", str(bad)], 2)}
        times = {
            name: [
                fresh_process("-m", "vitnas", *arguments, expect=code)[0] for _ in range(repeats)
            ]
            for name, (arguments, code) in commands.items()
        }
        loaded = {name: heavy_modules(*arguments) for name, (arguments, _) in commands.items()}
    bare = [fresh_process("-c", "pass")[0] for _ in range(repeats)]
    fresh_process("-c", "import torch, ray, optuna")  # their files are then in memory, too
    heavy = [fresh_process("-c", "import torch, ray, optuna")[0] for _ in range(1 if quick else 5)]
    measured = {
        "vitnas --help": times["help"],
        "vitnas space bad.yaml": times["error"],
        "python -c pass": bare,
        "import torch, ray, optuna": heavy,
    }
    rows = [
        (name, f"{statistics.median(each):.3f}", f"{max(each):.3f}", str(len(each)))
        for name, each in measured.items()
    ]
    show(("process", "median, s", "worst, s", "runs"), rows)
    for name, modules in loaded.items():
        print(f"heavy modules that {name} loads: {', '.join(modules) or 'none'}")
    starts = {name: spent(code, 1 if quick else 5) for name, code in STARTS.items()}
    print()
    show(
        ("process", "CPU s", "MB", "slow modules"),
        [
            (name, f"{one['cpu']:.2f}", f"{one['mb']:.0f}", ", ".join(one["slow"]) or "none")
            for name, one in starts.items()
        ],
    )
    bare_torch, worker, _ = starts.values()
    slowest = max(statistics.median(times[name]) for name in commands)
    figures: Figures = {
        "help_s_median": round(statistics.median(times["help"]), 3),
        "help_s_worst": round(max(times["help"]), 3),
        "error_s_median": round(statistics.median(times["error"]), 3),
        "error_s_worst": round(max(times["error"]), 3),
        "python_s_median": round(statistics.median(bare), 3),
        "heavy_imports_over_slowest": round(statistics.median(heavy) / slowest, 1),
        "heavy_modules_loaded": sorted({name for each in loaded.values() for name in each}),
        "num_torch_ray_optuna": sum(
            name in each for each in loaded.values() for name in ("torch", "ray", "optuna")
        ),
        "worker_over_import_torch": round(worker["cpu"] / bare_torch["cpu"], 2),
        "worker_mb": round(worker["mb"]),
        "worker_slow_modules": len(worker["slow"]),
    }
    bound = {"max": 0.7}
    targets: dict[str, Bound] = {
        "help_s_median": bound,
        "help_s_worst": bound,
        "error_s_median": bound,
        "error_s_worst": bound,
        "num_torch_ray_optuna": {"max": 0},
        "worker_over_import_torch": {"max": 2.0},
        "worker_mb": {"max": 400.0},
        "worker_slow_modules": {"max": 0},
    }
    conclude("startup", quick, figures, targets)


if __name__ == "__main__":
    main()
