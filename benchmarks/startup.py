"""How long the command line takes to answer: help, and a mistake in a space file.

Wall times of fresh processes, Python's own start included; for comparison, what a process pays that
imports torch, Ray and Optuna, as each command would if the imports were not put off.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

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
    }
    bound = {"max": 0.7}
    targets: dict[str, Bound] = {
        "help_s_median": bound,
        "help_s_worst": bound,
        "error_s_median": bound,
        "error_s_worst": bound,
        "num_torch_ray_optuna": {"max": 0},
    }
    conclude("startup", quick, figures, targets)


if __name__ == "__main__":
    main()
