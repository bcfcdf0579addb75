"""Exported networks: whether model.py, model.pt2 and model.onnx compute the same, and ONNX's speed.

Random draws of the small spaces with fresh weights, batch norms in eval mode. A difference is the
largest one of a score, in units of the largest score. For the speed, eager PyTorch and onnxruntime
take turns in bursts on one thread; a ratio above 1 says that onnxruntime is faster. Needs the
extra `onnx`.
"""

from __future__ import annotations

import statistics
import tempfile
import types
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from common import conclude, draw_configs, is_quick, rounded, show

from vitnas.config.model import ModelConfig
from vitnas.config.space import load_space
from vitnas.deploy.timing import interleaved
from vitnas.exported.check import TOLERANCES
from vitnas.exported.preprocessing import unknown
from vitnas.exported.programs import write_programs
from vitnas.exported.runtime import run_with
from vitnas.exported.source.write import model_source
from vitnas.nn import build_model
from vitnas.nn.weights import state_of

BATCHES = (1, 32)


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


def main() -> None:
    quick = is_quick(__doc__)
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
