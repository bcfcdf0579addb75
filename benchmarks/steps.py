"""A step of training in processor time, and how many times faster than an earlier commit's it is.

Four networks of about 0.08, 0.4, 2 and 10 MFLOPs, and others like those of the spaces of small
images, are trained on made-up images, in batches of 32 on one thread, with Muon, as in a search on
the CPU. `--against REV` trains the same networks by the code of that revision, too, in turn with
this one's. A round is a process of each code; its figure is the least of several epochs, since what
else runs on the machine makes an epoch longer, never shorter. One process can still be a tenth
slower than the next one of the same code, so a figure is the median of the rounds, and a ratio has
its quartiles.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import ROOT, Figures, conclude, rounded, show

if TYPE_CHECKING:
    from vitnas.training.images import Images

TARGETS = {"80k": 1.6, "400k": 1.5, "2M": 1.3, "10M": 1.15}
"""How many times faster than the earlier commit's a step is to be, by network."""
BATCH, STEPS, ROUNDS, EPOCHS = 32, 20, 12, 4


def tree_of(side: int, stages: list[tuple[str, int]]) -> dict[str, Any]:
    """A model file."""
    fields = {"head_dim": 8, "kernel_size": 3, "conv_act": "hard_swish", "mlp_ratio": 2.0}
    named = [{**fields, "token_mixer": mixer, "embed_dim": dim} for mixer, dim in stages]
    shape = {"img_size": side, "num_classes": 10, "stem": {"kind": "conv", "stride": 2}}
    return {**shape, "norm": "batchnorm", "head": {"norm": "none"}, "stages": named}


def pooled(
    side: int, stem: dict[str, Any], downsample: str, stages: list[tuple[str, int]]
) -> dict[str, Any]:
    """A model file with max pooling and CReLU, as in the spaces."""
    tree = tree_of(side, stages)
    stem = {"kind": "conv", "act": "crelu", "filters": "dct", **stem}
    return {**tree, "stem": stem, "downsample": downsample, "global_pool": "flatten"}


NETWORKS: dict[str, dict[str, Any]] = {
    "80k": tree_of(8, [("mbconv", 16), ("mhsa", 32)]),
    "400k": tree_of(16, [("mbconv", 16), ("mhsa", 32)]),
    "2M": tree_of(32, [("mbconv", 12), ("ska", 24), ("mhsa", 48)]),
    "10M": tree_of(32, [("mbconv", 24), ("cska", 48), ("mhsa", 96)]),
    "digits": pooled(8, {"stride": 2, "pools": 1, "convs": 2}, "conv", [("mbconv", 24)]),
    "fashion_32": pooled(
        32,
        {"stride": 2, "pools": 1},
        "maxpool",
        [("mbconv", 8), ("dwconv", 24), ("mhsa", 48)],
    ),
    "images_64": pooled(
        64,
        {"stride": 4, "pools": 2},
        "crelu",
        [("mbconv", 16), ("mbconv", 32), ("mhsa", 96)],
    ),
    "images_64_ska": pooled(
        64, {"stride": 4, "pools": 2}, "crelu", [("ska", 16), ("mbconv", 32), ("mbconv", 64)]
    ),
}
"""Model files by name. The last four are like those of a space; an earlier revision may not have
what they are made of, and is then not compared."""


def measure(name: str, epochs: int) -> tuple[int, float] | None:
    """Multiply-adds of a network, and the milliseconds of a step by the `vitnas` that is found.

    None where that has no such network.
    """
    import torch

    from vitnas.config.model import ModelConfig
    from vitnas.config.training import ProxyConfig
    from vitnas.cost.closed_form import closed_form
    from vitnas.training.proxy import ProxyTraining

    torch.set_num_threads(1)
    try:
        config = ModelConfig.model_validate(NETWORKS[name])
    except ValueError:
        return None
    images = images_of(config.image_hw[0], STEPS)
    proxy = ProxyConfig(epochs=1 + epochs, batch_size=BATCH, optimizer="muon", augment="none")
    taken, training = [], iter(ProxyTraining(config, proxy, images, 0))
    next(training)  # warms up
    for _ in range(epochs):
        started = time.process_time()
        next(training)
        taken.append((time.process_time() - started) / STEPS * 1e3)
    return closed_form(config).flops, min(taken)


def images_of(side: int, steps: int) -> Images:
    """Made-up images of three channels for so many steps."""
    import torch

    from vitnas.training import data  # an earlier one has no `vitnas.training.split`

    torch.manual_seed(0)
    pixels = torch.randint(256, (BATCH * steps, 3, side, side), dtype=torch.uint8)
    mean, deviation = torch.full((3, 1, 1), 127.0), torch.full((3, 1, 1), 74.0)
    train = data.Split(pixels, torch.arange(len(pixels)) % 10, mean, deviation)
    return data.Images("made up", train, train.of(torch.arange(2)), tuple(map(str, range(10))))


def measured_by(root: Path, epochs: int) -> dict[str, tuple[int, float]]:
    """`measure` of all networks, by the code in a checkout."""
    call = [sys.executable, __file__, "--measure", str(epochs)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(call, env=env, cwd=root, check=True, capture_output=True, text=True)
    found: dict[str, tuple[int, float]] = json.loads(done.stdout)
    return found


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """A revision's files in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "vitnas")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(root), revision], check=True)
        try:
            yield root
        finally:
            subprocess.run([*git, "remove", "--force", str(root)], check=True)


def compare(roots: dict[str, Path], rounds: int, epochs: int) -> Figures:
    """Milliseconds of a step by each code and how many times faster the first one is; its table."""
    taken: dict[str, dict[str, list[float]]] = {}  # by network and code, one of each round
    flops: dict[str, int] = {}
    for _ in range(rounds):
        for label, root in roots.items():
            for name, (counted, least) in measured_by(root, epochs).items():
                flops[name] = counted
                taken.setdefault(name, {}).setdefault(label, []).append(least)
    figures: dict[str, float] = {}
    rows = []
    for name, by_label in taken.items():
        now, *earlier = by_label.values()
        row = [
            name,
            f"{flops[name]:,}",
            *(f"{statistics.median(each):.2f}" for each in by_label.values()),
        ]
        figures[f"ms_{name}"] = rounded(statistics.median(now))
        for before in earlier:
            ratios = [b / a for a, b in zip(now, before, strict=True)]
            low, middle, high = quartiles(ratios)
            row += [f"{middle:.2f}", f"{low:.2f} to {high:.2f}"]
            figures[f"faster_{name}"] = rounded(middle)
        rows.append(row)
    head = ["network", "FLOPs", *(f"{label}, ms" for label in roots)]
    show([*head, "ratio", "quartiles"] if len(roots) > 1 else head, rows)
    return figures


def quartiles(values: list[float]) -> list[float]:
    """The first, the second (the median) and the third one; of one value, that value."""
    several = values if len(values) > 1 else values * 2
    return statistics.quantiles(several, n=4, method="inclusive")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it still run?")
    parser.add_argument("--against", metavar="REV", help="a revision that is compared with")
    parser.add_argument("--measure", type=int, metavar="EPOCHS", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        found = {name: measure(name, asked.measure) for name in NETWORKS}
        print(json.dumps({name: pair for name, pair in found.items() if pair}))
        return
    with nullcontext() if asked.against is None else checkout(asked.against) as earlier:
        roots = {"now": ROOT} | ({} if earlier is None else {asked.against: earlier})
        if asked.quick and earlier is None:
            roots["now again"] = ROOT  # so that all of it runs
        sizes = (1, 1) if asked.quick else (ROUNDS, EPOCHS)
        figures = compare(roots, *sizes)
    bounds = {f"faster_{name}": {"min": least} for name, least in TARGETS.items()}
    conclude("steps", asked.quick, figures, {n: b for n, b in bounds.items() if n in figures})


if __name__ == "__main__":
    main()
