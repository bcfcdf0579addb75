"""Exported networks: whether model.py, model.pt2 and model.onnx compute the same, and ONNX's speed.

Random draws of the small spaces with fresh weights, batch norms in eval mode. A difference is the
largest one of a score, in units of the largest score. For the speed, eager PyTorch and onnxruntime
take turns in bursts on one thread; a ratio above 1 says that onnxruntime is faster. Needs the
extra `onnx`. `--lines` counts the lines of model.py instead: of 40 random networks of each space,
within its limits, formatted as `ruff format` does by default.
"""

from __future__ import annotations

import statistics
import tempfile
import types
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from common import ROOT, conclude, draw_configs, quick_parser, rounded, show

from vitnas.config.model import ModelConfig
from vitnas.config.space import SearchSpace, load_space
from vitnas.cost.closed_form import closed_form
from vitnas.cost.limits import over_limits
from vitnas.deploy.timing import interleaved
from vitnas.exported.check import TOLERANCES
from vitnas.exported.preprocessing import unknown
from vitnas.exported.programs import write_programs
from vitnas.exported.runtime import run_with
from vitnas.exported.source.write import model_source
from vitnas.nn import build_model
from vitnas.nn.weights import state_of

BATCHES = (1, 32)
COUNTED = (
    *("digits", "images_64", "fashion_32", "hybrid_fashion"),
    *(str(ROOT / "benchmarks/fashion_32_full.yaml"), "hybrid_cifar", "hybrid_imagenet"),
    *("papers_32", "papers_224"),
)
MOST_LINES = 300


@dataclass(frozen=True)
class Exported:
    """One network: its space, differences by file, times of PyTorch over onnxruntime by batch."""

    space: str
    lines: int
    differences: dict[str, float]
    ratios: dict[int, float]


def exported(name: str, config: ModelConfig, rounds: int) -> Exported:
    torch.manual_seed(0)
    network = build_model(config).eval()
    source = model_source(config, unknown(config.in_chans), config.name)
    module = types.ModuleType("model")
    module.__file__ = "model.py"
    exec(compile(source, "model.py", "exec"), module.__dict__)
    plain = module.Network().eval()
    plain.load_state_dict(state_of(network))
    with tempfile.TemporaryDirectory() as place, torch.inference_mode():
        left_out = write_programs(Path(place), network, ("pt2", "onnx"))
        if left_out:
            raise SystemExit(f"{name}: {left_out}")
        onnx = run_with(Path(place) / "model.onnx", 1)
        program = torch.export.load(Path(place) / "model.pt2").module()
        images = torch.randn(8, config.in_chans, *config.image_hw)
        expected = network(images)
        runs = {"model.py": plain, "model.pt2": program, "model.onnx": onnx}
        scale = float(expected.abs().max())
        differences = {
            file: float((run(images) - expected).abs().max()) / scale for file, run in runs.items()
        }
        ratios = {}
        for batch in BATCHES:
            images = torch.randn(batch, config.in_chans, *config.image_hw)
            passes = {"eager": partial(network, images), "onnx": partial(onnx, images)}
            times = interleaved(passes, rounds)
            ratios[batch] = times["eager"] / times["onnx"]
    return Exported(name, source.count("\n"), differences, ratios)


def lines_of(space: SearchSpace, count: int) -> list[int]:
    """Lines of model.py of the first random draws within the limits, shortest first."""
    found: list[int] = []
    for config in draw_configs(space, 20 * count):
        if not over_limits(closed_form(config), space.config.limits):
            source = model_source(config, unknown(config.in_chans), config.name)
            found.append(source.count("\n"))
        if len(found) == count:
            return sorted(found)
    raise SystemExit(f"{space.name}: too few of its draws are within the limits")


def count_lines(quick: bool) -> None:
    """Print how long model.py is."""
    spaces = [load_space(name) for name in (COUNTED[:2] if quick else COUNTED)]
    found = {space.name: lines_of(space, 3 if quick else 40) for space in spaces}
    over = {name: sum(line >= MOST_LINES for line in lines) for name, lines in found.items()}
    show(
        ("space", "networks", "least", "median", "most", f"{MOST_LINES} or more"),
        [
            (
                name,
                *map(str, (len(lines), lines[0], statistics.median(lines), lines[-1], over[name])),
            )
            for name, lines in found.items()
        ],
    )
    figures = {f"lines_median_{name}": statistics.median(lines) for name, lines in found.items()}
    conclude("exports_lines", quick, figures, {})


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("--lines", action="store_true", help="count the lines of model.py instead")
    options = parser.parse_args()
    if options.lines:
        count_lines(options.quick)
        return
    quick = options.quick
    torch.set_num_threads(1)
    names = ["digits"] if quick else ["digits", "fashion_32", "images_64", "hybrid_fashion"]
    count, rounds = (2, 3) if quick else (5, 15)
    found = [
        exported(name, config, rounds)
        for name in names
        for config in draw_configs(load_space(name), count)
    ]
    worst = {file: max(one.differences[file] for one in found) for file in TOLERANCES}
    show(
        ("space", "lines", *TOLERANCES, *(f"ratio, batch {batch}" for batch in BATCHES)),
        [
            (
                one.space,
                str(one.lines),
                *(f"{one.differences[file]:.1e}" for file in TOLERANCES),
                *(f"{one.ratios[batch]:.2f}" for batch in BATCHES),
            )
            for one in found
        ],
    )
    print(f"{len(found)} networks compared in {len(TOLERANCES)} files each")
    figures: dict[str, float] = {"networks": len(found)}
    targets: dict[str, dict[str, float]] = {}
    for file, most in TOLERANCES.items():
        figures[f"difference_{Path(file).suffix[1:]}"] = rounded(worst[file])
        targets[f"difference_{Path(file).suffix[1:]}"] = {"max": most}
    for batch in BATCHES:
        ratios = [one.ratios[batch] for one in found]
        figures[f"eager_over_onnx_median_batch_{batch}"] = rounded(statistics.median(ratios))
        figures[f"eager_over_onnx_least_batch_{batch}"] = rounded(min(ratios))
        targets[f"eager_over_onnx_least_batch_{batch}"] = {"min": 1.0}
    conclude("exports", quick, figures, targets)


if __name__ == "__main__":
    main()
