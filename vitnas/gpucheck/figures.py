"""What is measured, each figure in a process of its own.

    python -m vitnas.gpucheck.figures NAME [--dry]

The last line printed is a JSON object. A dry run takes the CPU and little of everything: it shows
that the code runs, and its figures mean nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.training import ProxyConfig
from vitnas.cost.closed_form import closed_form
from vitnas.engine.backends.mps import shared_cards
from vitnas.nn.model import build_model
from vitnas.records import Outcome
from vitnas.training.images import Images
from vitnas.training.proxy import EpochResult, ProxyTraining
from vitnas.training.split import Split

Found = Mapping[str, float]


class Load(NamedTuple):
    """A proxy training.

    Attributes:
        images: that train.
        epochs, batch: of its recipe.
        width: channels of the first stage of its network.
    """

    images: int
    epochs: int
    batch: int
    width: int


class Extent(NamedTuple):
    """How much is done.

    Attributes:
        large: a proxy training that is to be fast.
        small: one that leaves most of a card idle, as those of most searches.
        trials: of the search.
        workers: of the search.
        together: small trainings that share the card.
        device: where.
    """

    large: Load
    small: Load
    trials: int
    workers: int
    together: int
    device: str


FULL = Extent(Load(50_000, 10, 512, 48), Load(12_800, 10, 128, 24), 24, 8, 4, "cuda")
DRY = Extent(Load(64, 2, 32, 8), Load(64, 2, 32, 8), 2, 2, 2, "cpu")


def hybrid(width: int) -> ModelConfig:
    """Three stages of convolutions, static keys and sliced attention; 47 MFLOPs for 48 channels."""
    tree = {
        "name": "hybrid",
        "img_size": 32,
        "num_classes": 10,
        "stem": {"kind": "conv", "stride": 2},
        "norm": "batchnorm",
        "head": {"norm": "none"},
        "downsample": "separable",
        "stages": [
            {"token_mixer": "mbconv", "depth": 2, "embed_dim": width, "expansion": 2.0},
            {"token_mixer": "cska", "depth": 2, "embed_dim": 2 * width, "num_heads": 4},
            {
                "token_mixer": "mhsa",
                "depth": 2,
                "embed_dim": 4 * width,
                "num_heads": 4,
                "groups": [4, 1],
                "mlp_ratio": 2.0,
            },
        ],
        "broad": {"gamma": 0.4},
    }
    return validate(ModelConfig, tree, file="the network of the check")


def made_up(number: int) -> Images:
    """So many random images of ten classes, 3 x 32 x 32, that train, and a tenth more to score."""
    draw = torch.Generator().manual_seed(0)
    cut = max(2, number // 10)
    pixels = torch.randint(0, 256, (cut + number, 3, 32, 32), dtype=torch.uint8, generator=draw)
    labels = torch.arange(cut + number) % 10
    middle, spread = torch.full((3, 1, 1), 127.5), torch.full((3, 1, 1), 73.9)
    whole = Split(pixels, labels, middle, spread)
    train, val = whole.of(torch.arange(cut, cut + number)), whole.of(torch.arange(cut))
    return Images("made-up images", train, val, classes=tuple("abcdefghij"))


def training_of(load: Load, device: str, seed: int = 0) -> ProxyTraining:
    recipe = ProxyConfig(epochs=load.epochs, batch_size=load.batch)
    return ProxyTraining(hybrid(load.width), recipe, made_up(load.images), seed, device)


def warmed_up(load: Load, device: str) -> None:
    """Train a network of other sizes for some steps: a process uses a card for the first time for
    seconds, since libraries load their kernels then."""
    few = load._replace(images=14 * load.batch, epochs=1, width=load.width + 8)
    for _ in training_of(few, device):
        pass


def agreement(size: Extent) -> Found:
    """The largest difference between logits of the device and of the CPU, in float32."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    images = torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    model = build_model(hybrid(size.large.width)).eval()
    with torch.no_grad():
        here = model(images)
        there = model.to(size.device)(images.to(size.device)).cpu()
    return {"difference": float((here - there).abs().max() / here.abs().max())}


def repeated(size: Extent) -> Found:
    """The largest difference between two curves of one trial: alone, and beside another one."""
    images = min(size.large.images, 20 * size.large.batch)
    few = size.large._replace(images=images, epochs=2)

    def values(result: EpochResult) -> Tensor:
        return torch.tensor([result.top1, result.loss, result.log_likelihood]).double()

    alone = [values(result) for result in training_of(few, size.device)]
    two = [training_of(few, size.device, seed) for seed in (0, 1)]
    beside = [values(result) for result, _ in zip(*two, strict=True)]
    return {"difference": float((torch.stack(alone) - torch.stack(beside)).abs().max())}


def captured(size: Extent) -> Found:
    """How many times as fast steps are as a CUDA graph, for the large and for the small network."""
    found = {}
    for name, load in (("ratio", size.large), ("ratio_small", size.small)):
        few = load._replace(images=min(load.images, 30 * load.batch), epochs=3)
        as_calls, as_graph = (_seconds_of_epoch(few, size.device, way) for way in (False, True))
        found[name] = as_calls / as_graph
    return found


def _seconds_of_epoch(load: Load, device: str, is_captured: bool) -> float:
    """Of the last one, in which nothing is used for the first time."""
    training = training_of(load, device)
    if not is_captured:
        training.call_steps()
    *_, last = training
    return last.seconds


def proxy(size: Extent) -> Found:
    """One proxy training of the large network on images in memory, in a process that has trained
    another one."""
    found = _proxy(size.large, size.device)
    if size.device != "cpu":
        found["memory_mb"] = torch.cuda.max_memory_allocated() / 1e6
    return found


def small(size: Extent) -> Found:
    """As `proxy`, of the small network, from a line on the input on."""
    return _proxy(size.small, size.device, wait=True)


def _proxy(load: Load, device: str, wait: bool = False) -> dict[str, float]:
    warmed_up(load, device)
    training = training_of(load, device)
    if wait:
        print("ready", flush=True)
        sys.stdin.readline()
    started = time.perf_counter()
    ends = [time.perf_counter() for _ in training]
    steady = (ends[-1] - ends[0]) / (len(ends) - 1)
    return {
        "mflops": closed_form(hybrid(load.width)).flops / 1e6,
        "seconds": ends[-1] - started,
        "images_per_second": load.images / steady,
    }


def digits(size: Extent) -> Found:
    """A search of the space `digits` without baselines, from start to report; and the median of its
    trainings, which says how much of that is starting."""
    from vitnas import api

    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run = api.search(
            "digits",
            Path(folder) / "run",
            progress=False,
            trials=size.trials,
            baselines=False,
            backend="serial" if size.device == "cpu" else "tune",
            gpus_per_trial=0.0 if size.device == "cpu" else 1 / size.workers,
        )
        seconds = time.perf_counter() - started
    failed = [trial.error for trial in run.trials if trial.outcome in _FAILED]
    if failed:  # such a search is fast
        raise RuntimeError(f"{len(failed)} trials failed: {failed[0]}")
    trained = [trial.seconds for trial in run.trials if trial.seconds is not None]
    return {"trials": size.trials, "seconds": seconds, "median_trial": median(trained)}


_FAILED = (Outcome.FAILED, Outcome.OOM, Outcome.TIMEOUT)


def shared(size: Extent) -> Found:
    """Different processes on one card: their throughput together as a multiple of one alone, as a
    search shares a card, and in turns."""
    alone, turns = (_at_once(number, size) for number in (1, size.together))
    with shared_cards() as sharing:
        together = _at_once(size.together, size) if sharing.by_mps else turns
    found = {"networks": size.together, "ratio_in_turns": size.together * alone / turns}
    return found | {"ratio": size.together * alone / together, "by_mps": sharing.by_mps}


def _at_once(number: int, size: Extent) -> float:
    """Seconds of so many small trainings that begin together, until the last one ends."""
    command = [sys.executable, "-m", __spec__.name, "small", *(["--dry"] if size is DRY else [])]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) for _ in range(number)]
    for process in running:  # starting takes as long as a short training
        assert process.stdout is not None
        process.stdout.readline()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate()[0] for process in running]
    for process in running:
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return max(float(json.loads(text.splitlines()[-1])["seconds"]) for text in said)


FIGURES: Mapping[str, Callable[[Extent], Found]] = {
    "agreement": agreement,
    "repeated": repeated,
    "captured": captured,
    "proxy": proxy,
    "digits": digits,
    "shared": shared,
}

if __name__ == "__main__":
    name, *options = sys.argv[1:]
    figure = small if name == "small" else FIGURES[name]
    print(json.dumps(figure(DRY if "--dry" in options else FULL)))
