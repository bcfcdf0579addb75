"""Networks of 108 and 1,000 layers: time and memory to build them and to train a step on the CPU.

Each runs in a process of its own; memory is its largest resident set, torch included. SReT-1000 at
224 px runs with gradient checkpointing.
"""

from __future__ import annotations

import json

from common import ROOT, Bound, Figures, conclude, fresh_process, is_quick, show

ONE = """
import json, resource, sys, time
import torch
from torch.nn.functional import cross_entropy
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig, load_config
from vitnas.cost.closed_form import closed_form
from vitnas.nn.model import build_model
from vitnas.nn.zoo import zoo_config

name, side, batch, checkpointing = sys.argv[1], *map(int, sys.argv[2:])
tree = load_config(name) if name.endswith(".yaml") else zoo_config(name)
config = validate(ModelConfig, {**tree.model_dump(), "img_size": side, "num_classes": 10})
torch.manual_seed(0)
started = time.perf_counter()
model = build_model(config)
built = time.perf_counter() - started
model.set_grad_checkpointing(bool(checkpointing))
images, labels = torch.randn(batch, 3, side, side), torch.zeros(batch, dtype=torch.long)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
started = time.perf_counter()
cross_entropy(model(images), labels).backward()
optimizer.step()
step = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
params = closed_form(tree).num_params
print(json.dumps({"params": params, "build_s": built, "step_s": step, "peak_mb": peak}))
"""
LONG = "benchmarks/sret_1000.yaml"
CASES = [("deit_108", 32, 2, 0), ("sret_108", 32, 2, 0), (LONG, 32, 2, 0)]
LARGE = [("deit_108", 224, 1, 0), ("sret_108", 224, 1, 0), (LONG, 224, 1, 1)]


def main() -> None:
    quick = is_quick(__doc__)
    rows, figures = [], {}
    for name, side, batch, checkpointing in CASES[1:2] if quick else CASES + LARGE:
        arguments = (name, str(side), str(batch), str(checkpointing))
        _, done = fresh_process("-c", ONE, *arguments, cwd=ROOT)
        found = json.loads(done.stdout.splitlines()[-1])
        short = name.removeprefix("benchmarks/").removesuffix(".yaml")
        figures |= {f"{short}_{side}_{key}": round(value, 2) for key, value in found.items()}
        cells = [f"{found['params'] / 1e6:.2f}", f"{found['build_s']:.2f}"]
        cells += [f"{found['step_s']:.2f}", f"{found['peak_mb']:.0f}"]
        rows.append((f"{short} at {side} px, batch {batch}", *cells))
    show(("network", "M params", "build, s", "step, s", "peak, MB"), rows)
    targets: dict[str, Bound] = {"sret_108_32_params": {"min": 13e6, "max": 15e6}}
    if not quick:
        targets["sret_1000_32_params"] = {"min": 13e6, "max": 15e6}
    results: Figures = figures
    conclude("deep", quick, results, targets)


if __name__ == "__main__":
    main()
